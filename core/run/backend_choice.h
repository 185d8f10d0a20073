// Which backends can run here, asked in child processes: the runner itself never touches a device.
#pragma once

#include <map>
#include <string>

#include "core/plugin/registry.h"

namespace assay::run {

struct BackendState {
  int preference = 0;                // 0: cannot run here; else higher is better
  std::string device;                // or the reason why it cannot run
  std::string device_variable = {};  // assay_backend_info: how workers are bound to a device; empty: they are not
  std::string device_indices = {};
};

// Answers are kept: each backend is asked once. For one thread.
class BackendChoice {
 public:
  explicit BackendChoice(const plugin::PluginRegistry& registry) : registry_(registry) {}

  // What the backend of this name says of itself; one without a file is not usable.
  const BackendState& state(const std::string& name);

  // The usable backend of the highest preference (ties: first by name). kInfra naming every backend's reason when none
  // is usable.
  Result<std::string> best();

  bool exists(const std::string& name) const;

 private:
  const plugin::PluginRegistry& registry_;
  std::map<std::string, BackendState> states_;
};

// Name of the platform that goldens of this backend are filed under: "cpu_x86_64" for cpu and reference.
std::string default_platform(const std::string& backend);

}  // namespace assay::run
