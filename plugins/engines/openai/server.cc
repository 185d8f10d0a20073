#include "plugins/engines/openai/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "assay/sdk.hpp"
#include "core/command/environment.h"
#include "core/command/log_tail.h"
#include "plugins/engines/openai/http/client.h"
#include "plugins/engines/openai/wire.h"

namespace assay::engines::openai {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr const char* kHost = "127.0.0.1";
constexpr std::chrono::milliseconds kBetweenProbes{50};
constexpr double kProbeSeconds = 5;  // of one request whether it is ready
constexpr int kPorts = 3;            // that are tried where others take them

sockaddr_in address_of(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Somebody listens there.
bool is_taken(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const int yes = 1;  // what is left of connections does not count
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = address_of(port);
  const bool taken =
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == EADDRINUSE;
  ::close(socket);
  return taken;
}

// A port that nothing listened on just now. It is free again at once: a server cannot be handed one that is bound.
Result<int> free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = address_of(0);
  socklen_t size = sizeof address;
  const bool found = socket >= 0 && ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const std::string why = std::error_code(errno, std::generic_category()).message();
  if (socket >= 0) ::close(socket);
  if (!found) return infra(fmt::format("server: no free port on {}: {}", kHost, why));
  return static_cast<int>(ntohs(address.sin_port));
}

std::string replaced(std::string word, int port) {
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>("{port}", std::to_string(port)), {"{host}", kHost}}) {
    for (size_t at = word.find(name); at != std::string::npos; at = word.find(name, at + value.size())) {
      word.replace(at, name.size(), value);
    }
  }
  return word;
}

// Beside engine.log, which stderr is while a case runs.
fs::path log_file(const ServerOptions& server) {
  if (!server.log.empty()) return server.log;
  std::error_code code;
  const fs::path log = fs::read_symlink("/proc/self/fd/2", code);
  if (!code && fs::is_regular_file(log, code)) return log.parent_path() / "server.log";
  return fs::temp_directory_path() / fmt::format("assay-server-{}.log", ::getpid());
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const OpenaiOptions& options, const Host& host) {
  for (int tries = 1;; ++tries) {
    const Result<int> port = free_port();
    if (!port) return port.status();
    bool ended = false;
    Result<std::unique_ptr<Server>> server = start_at(*port, options, host, &ended);
    if (server || !ended || tries == kPorts || !is_taken(*port)) return server;
    host.log(ASSAY_LOG_WARN,
             fmt::format("server: somebody else took port {} before it did; another one is tried", *port));
  }
}

Result<std::unique_ptr<Server>> Server::start_at(int port, const OpenaiOptions& options, const Host& host,
                                                 bool* ended) {
  const ServerOptions& given = options.server;
  std::string key;
  const Result<std::vector<std::string>> headers = request_headers(options, &key);
  if (!headers) return headers.status();
  command::CommandOptions command;
  for (const std::string& word : given.command) command.argv.push_back(replaced(word, port));
  command.environment = command::own_environment();
  command::Redactor redactor(command.environment);
  for (const auto& [name, value] : given.environment) command.environment[name] = replaced(value, port);
  redactor.add(command.environment);
  redactor.add_words(command.argv);
  redactor.add("API_KEY", key);  // whatever its variable is called
  if (const auto own = command.environment.find(options.api_key_variable); own != command.environment.end()) {
    redactor.add("API_KEY", own->second);
  }
  command.folder = given.folder;
  const fs::path log = log_file(given);
  command.output = command.errors = log;
  command.kill_grace = std::chrono::milliseconds(static_cast<int64_t>(given.stop_seconds * 1000));
  std::unique_ptr<Server> server(
      new Server(fmt::format("http://{}:{}", kHost, port), log, std::move(redactor), given.stop_seconds));
  Result<command::Command> started = command::Command::start(std::move(command));
  if (!started) return started.status().with("server");
  server->command_.emplace(*std::move(started));
  host.log(ASSAY_LOG_INFO, fmt::format("server: started at {}, process {}, log {}", server->url_,
                                       server->command_->pid(), log.string()));
  if (Status ready = server->wait_until_ready(options, *headers, host); !ready.ok()) {
    *ended = server->end_.has_value();
    if (const double seconds = options.case_time.seconds; seconds > 0) {  // half of the reserve is left to the core
      const std::chrono::duration<double> half(reserve_of(seconds) / 2);
      server->gone_by_ = options.limits.ends + std::chrono::duration_cast<Clock::duration>(half);
    }
    return ready;
  }
  return server;
}

Server::~Server() {
  if (!command_ || end_) return;
  command_->stop();
  double most = stop_seconds_ + 2;
  if (gone_by_) most = std::clamp(std::chrono::duration<double>(*gone_by_ - Clock::now()).count(), 0.0, most);
  command_->wait(std::chrono::milliseconds(static_cast<int64_t>(most * 1000)));
  command_.reset();  // nobody writes to the log any more
  [[maybe_unused]] const Status clean = redactor_.file(log_);
}

Status Server::check() {
  if (command_ && !end_) {
    end_ = command_->poll();
    if (end_) clean_ = redactor_.file(log_);
  }
  if (!end_) return {};
  const std::string unclean = clean_.ok() ? "" : "; " + clean_.message();
  return internal(fmt::format("the server ended: {}{}{}", end_->text(), tail(), unclean));
}

std::string Server::tail() const {
  const std::string lines = command::last_lines(log_, redactor_, 5, 600);
  return fmt::format("; log {}{}", log_.string(), lines.empty() ? " is empty" : ": " + lines);
}

Status Server::wait_until_ready(const OpenaiOptions& options, const std::vector<std::string>& headers,
                                const Host& host) {
  HttpLimits limits = options.limits;
  limits.whole_seconds = limits.first_byte_seconds = limits.between_seconds = kProbeSeconds;
  limits.ends_text.clear();  // it is said below
  Result<std::unique_ptr<HttpClient>> client = HttpClient::open(limits);
  if (!client) return client.status();
  std::string path = options.server.ready.empty() ? "/health" : options.server.ready;
  const Clock::time_point begin = Clock::now();
  std::string seen = "nothing";
  while (true) {
    if (host.cancelled()) return Status(StatusCode::kCancelled, "the run is to stop");
    if (Status lives = check(); !lives.ok()) return infra(lives.message() + " (before it was ready)");
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    const bool case_over = Clock::now() >= options.limits.ends;
    if (waited > options.server.ready_seconds || case_over) {
      const std::string limit = case_over ? options.limits.ends_text
                                          : fmt::format("server.ready_seconds is {:g}", options.server.ready_seconds);
      return infra(fmt::format("the server is not ready after {:.1f} s: {}: GET {}{} gave {}{}", waited, limit, url_,
                               path, seen, tail()));
    }
    (*client)->start({.url = url_ + path, .body = "", .headers = headers, .sink = {}});
    std::vector<HttpAnswer> ended;
    while (ended.empty() && !host.cancelled() && check().ok()) ended = (*client)->poll(0.05);
    if (ended.empty()) continue;
    const HttpAnswer& answer = ended.front();
    // A server that asks for another key answers; the probes tell.
    const bool refuses = options.server.ready.empty() && (answer.code == 401 || answer.code == 403);
    if (answer.transport.ok() && (answer.code == 200 || refuses)) {
      host.log(ASSAY_LOG_INFO, fmt::format("server: ready after {:.1f} s", waited));
      return {};
    }
    seen = answer.transport.ok() ? fmt::format("HTTP {}", answer.code) : answer.transport.message();
    if (answer.transport.ok() && answer.code == 404 && options.server.ready.empty() && path == "/health") {
      path = "/v1/models";
      continue;
    }
    std::this_thread::sleep_for(kBetweenProbes);
  }
}

}  // namespace assay::engines::openai
