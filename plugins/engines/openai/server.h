// A server that the engine starts, waits for, and ends with all that it started.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/command/command.h"
#include "core/command/redact.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/openai/options.h"

namespace assay::engines::openai {

// For one thread at a time. Destroying it ends the tree of processes; so does the end of this process, however it ends.
// Once the server is over, its log has no secrets of its environment.
class Server {
 public:
  // Chooses a free port of 127.0.0.1, starts the command and waits until it answers; where it ends early and somebody
  // else listens there, another port is tried, twice at most. kInvalid or kNotFound for a command that cannot be
  // started, or an API key that is not there, kInfra for one that ends, or is not ready in time or before the case is
  // over (the end of its log is in the message), kCancelled once the host says so.
  static Result<std::unique_ptr<Server>> start(const OpenaiOptions& options, const Host& host);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& url() const { return url_; }
  // kInternal once its program has ended: how, and the end of its log.
  Status check();

 private:
  Server(std::string url, std::filesystem::path log, command::Redactor redactor, double stop_seconds)
      : url_(std::move(url)), log_(std::move(log)), redactor_(std::move(redactor)), stop_seconds_(stop_seconds) {}
  // `ended`: its program did, by itself, before it was ready.
  static Result<std::unique_ptr<Server>> start_at(int port, const OpenaiOptions& options, const Host& host,
                                                  bool* ended);
  Status wait_until_ready(const OpenaiOptions& options, const std::vector<std::string>& headers, const Host& host);
  std::string tail() const;

  std::string url_;
  std::filesystem::path log_;
  command::Redactor redactor_;  // of the server's environment
  double stop_seconds_;
  std::optional<std::chrono::steady_clock::time_point> gone_by_;  // of one that was not ready in a case with a limit
  std::optional<command::Command> command_;
  std::optional<command::CommandEnd> end_;
  Status clean_;  // of taking the secrets out of the log after its end
};

}  // namespace assay::engines::openai
