#include "plugins/launchers/command/options.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "plugins/engines/common/options_json.h"
#include "plugins/engines/common/template_words.h"

namespace assay::launchers {
namespace {

constexpr int kMostSlots = 100'000;
constexpr int kTransportFailed = 255;  // of ssh

// "gpu1", "gpu1:8".
Result<HostSlots> parse_host(const std::string& text) {
  HostSlots host{.name = text};
  if (const size_t colon = text.rfind(':'); colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, host.slots);
    if (error != std::errc() || stop != end || host.slots < 1 || host.slots > kMostSlots) {
      return invalid("options of launcher command: hosts holds '" + text + "', expected NAME or NAME:SLOTS");
    }
    host.name = text.substr(0, colon);
  }
  if (host.name.empty() || host.name.front() == '-') {
    return invalid("options of launcher command: hosts holds '" + text + "', expected NAME or NAME:SLOTS");
  }
  return host;
}

}  // namespace

const char* const kCommandOptionsSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["start"],
  "properties": {
    "start": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "words of the command"},
    "poll": {"type": "array", "items": {"type": "string"}},
    "cancel": {"type": "array", "items": {"type": "string"}},
    "hosts": {"type": "array", "items": {"type": "string"}, "description": "NAME or NAME:SLOTS"},
    "slots": {"type": "integer", "minimum": 1, "description": "tasks at once where there are no hosts"},
    "host_failures": {"type": "integer", "minimum": 1, "default": 3},
    "lost_codes": {"type": "array", "items": {"type": "integer"}, "default": [255]},
    "command_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 60}
  }
})json";

Result<CommandOptions> parse_command_options(std::string_view json) {
  const std::string what = "options of launcher command";
  CommandOptions made;
  made.lost_codes = {kTransportFailed};
  nlohmann::json rest = nlohmann::json::parse(json.empty() ? "{}" : json, nullptr, false);
  if (rest.is_object() && rest.contains("lost_codes")) {
    const auto codes = rest.find("lost_codes");
    const bool fits = codes->is_array() && std::all_of(codes->begin(), codes->end(), [](const nlohmann::json& one) {
                        return one.is_number_integer() && one.get<int64_t>() >= 1 && one.get<int64_t>() <= 255;
                      });
    if (!fits) return invalid(what + ": lost_codes is no list of exit codes from 1 to 255");
    made.lost_codes = codes->get<std::vector<int>>();
    rest.erase("lost_codes");
  }
  std::vector<std::string> hosts;
  const std::string text =
      rest.is_object() ? rest.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : std::string(json);
  engines::OptionsReader reader(text, what);
  reader.strings("start", &made.start);
  reader.strings("poll", &made.poll);
  reader.strings("cancel", &made.cancel);
  reader.strings("hosts", &hosts);
  reader.integer("slots", 1, kMostSlots, &made.slots);
  reader.integer("host_failures", 1, 1000, &made.host_failures);
  reader.number("command_seconds", {.above = 0, .most = 3600}, &made.command_seconds);
  reader.known("lost_codes");
  reader.known("workers");  // of the runner
  if (Status status = reader.finish(); !status.ok()) return status;
  if (made.start.empty()) {
    return invalid(what + R"(: start is not set; give the words of a command like ["ssh", "{host}", "{script}"])");
  }
  for (const std::string& one : hosts) {
    Result<HostSlots> host = parse_host(one);
    if (!host) return host.status();
    made.hosts.push_back(*std::move(host));
  }
  engines::TemplateVariables known;
  for (const char* name : {"argv", "command", "cpus", "devices", "environment", "folder", "index", "log", "memory",
                           "name", "script", "seconds"}) {
    known[name] = {.several = true, .joined = true};
  }
  if (!made.hosts.empty()) known["host"] = {};
  const auto check = [&](const char* option, const std::vector<std::string>& words_of_it) {
    return engines::fill_in(words_of_it, known, what + ": " + option).status();
  };
  if (Status status = check("start", made.start); !status.ok()) return status;
  known["id"] = {};
  if (Status status = check("poll", made.poll); !status.ok()) return status;
  if (Status status = check("cancel", made.cancel); !status.ok()) return status;
  const std::vector<std::string>& start = made.start;
  if (!engines::names_variable(start, "argv") && !engines::names_variable(start, "command") &&
      !engines::names_variable(start, "script"))
    return invalid(what + ": start has none of {script}, {argv} and {command}: it would run no worker");
  return made;
}

}  // namespace assay::launchers
