#include "plugins/engines/openai/place.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay::engines::openai {
namespace {

// Ends with the process, and the servers with it.
struct Places {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Server>> servers;  // by what they were started with
  std::map<std::string, std::shared_ptr<Place>> places;    // by the whole options
};

Places& all() {
  static Places places;
  return places;
}

std::string key_of(const ServerOptions& server) {
  std::string key = server.folder + '\0' + server.ready + '\0' + server.log;
  for (const std::string& word : server.command) key += '\1' + word;
  for (const auto& [name, value] : server.environment) key += '\2' + name + '=' + value;
  return key;
}

// What was found out about a server holds for the next case too, which has another time.
std::string without_case_time(const std::string& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(options, nullptr, false);
  if (!json.is_object()) return options;
  json.erase("case_time");
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<std::shared_ptr<Server>> server_for(const OpenaiOptions& options, const Host& host) {
  std::shared_ptr<Server>& kept = all().servers[key_of(options.server)];
  if (kept && kept->check().ok()) return kept;
  kept.reset();
  Result<std::unique_ptr<Server>> started = Server::start(options, host);
  if (!started) return started.status();
  kept = *std::move(started);
  return kept;
}

}  // namespace

Result<std::shared_ptr<Place>> place_for(const OpenaiOptions& options, const std::string& json, const Host& host) {
  const std::lock_guard lock(all().mutex);
  std::shared_ptr<Place>& kept = all().places[without_case_time(json)];
  if (kept && kept->check().ok()) return kept;
  kept.reset();
  auto place = std::make_shared<Place>();
  place->url = options.url;
  if (!options.server.command.empty()) {
    Result<std::shared_ptr<Server>> server = server_for(options, host);
    if (!server) return server.status();
    place->server = *server;
    place->url = place->server->url();
  }
  Result<std::unique_ptr<Wire>> wire = Wire::open(options, place->url, host);
  if (!wire) return wire.status();
  Result<Found> found = probe(**wire, options);
  if (!found) {
    if (Status lives = place->check(); !lives.ok()) return lives.with("probe");
    return found.status().with("probe");
  }
  place->found = *std::move(found);
  host.log(ASSAY_LOG_INFO, fmt::format("probe of {}:", place->url));
  for (const auto& [name, line] : place->found.facts) host.log(ASSAY_LOG_INFO, fmt::format("  {:<16} {}", name, line));
  kept = std::move(place);
  return kept;
}

}  // namespace assay::engines::openai
