// Which host gets the next task. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plugins/launchers/command/options.h"

namespace assay::launchers {

// Round robin over hosts with free slots; a host that failed so often in a row gets no more. Without hosts, slots of
// one nameless host. For one thread.
class Hosts {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Hosts(const CommandOptions& options);

  std::optional<size_t> take(Time now);  // nullopt: none is free now
  void give_back(size_t host);
  // The way to it, for a task that was begun then. Tasks that fail together, as their connections break, are one
  // failure. The host then rests for 1, 2, 4 ... seconds.
  void failed(size_t host, Time begun, Time now);
  void worked(size_t host) { hosts_[host].failures = 0; }

  bool none_left() const;  // all are left out
  const std::string& name(size_t host) const { return hosts_[host].name; }

 private:
  struct Host {
    std::string name;
    int free = 0;
    int failures = 0;
    Time failed_at = {};
    Time rests_until = {};
  };
  bool usable(const Host& host) const { return host.failures < most_failures_ || nameless_; }

  std::vector<Host> hosts_;
  int most_failures_;
  bool nameless_;
  size_t next_ = 0;
};

}  // namespace assay::launchers
