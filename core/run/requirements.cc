#include "core/run/requirements.h"

#include <fmt/format.h>

#include <string_view>

#include "core/discover/input_path.h"

namespace assay::run {
namespace {

constexpr std::string_view kDevice = "device:";
constexpr std::string_view kPath = "path:";

// `reason` why the backend cannot run here; "" when it can.
std::string absent_backend(const std::string& name, BackendChoice& backends) {
  if (!backends.exists(name)) return "no such backend";
  const BackendState& state = backends.state(name);
  return state.preference == 0 ? state.device : "";
}

std::string absent_path(const std::string& path, const std::string& case_dir, const discover::Variables& variables) {
  const Result<std::string> real = discover::substitute(path, variables);
  if (!real) return real.status().message();
  const Result<std::string> found = discover::find_input(*real, case_dir);
  return found ? "" : found.status().message();
}

}  // namespace

std::string absent_requirement(const TestCase& test, const discover::Variables& variables, BackendChoice& backends) {
  for (const std::string& name : test.assay.requirements) {
    std::string reason;
    if (name.starts_with(kPath)) {
      reason = absent_path(name.substr(kPath.size()), test.dir, variables);
    } else if (name.starts_with(kDevice)) {
      reason = absent_backend(name.substr(kDevice.size()), backends);
    } else if (variables.find(name) == nullptr) {
      reason = backends.exists(name)
                   ? absent_backend(name, backends)
                   : fmt::format("variable {0} is not set (--set {0}=...), and no backend has that name", name);
    }
    if (!reason.empty()) return fmt::format("requires {}: {}", name, reason);
  }
  return "";
}

}  // namespace assay::run
