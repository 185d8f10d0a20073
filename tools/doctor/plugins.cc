#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/plugin/doctor.h"
#include "core/plugin/registry.h"
#include "core/run/backend_choice.h"
#include "tools/doctor/doctor.h"

namespace assay::doctor {

void examine_plugins(const DoctorInput& input, std::vector<Finding>* findings) {
  const plugin::DoctorReport report = plugin::doctor(input.plugins);
  const std::filesystem::path worker = input.program_dir / "assay-worker";
  if (::access(worker.c_str(), X_OK) == 0) {
    findings->push_back({"installation", "assay-worker", State::kOk, worker.string(), ""});
  } else {
    findings->push_back({"installation", "assay-worker", State::kProblem,
                         worker.string() + " is not there or not executable",
                         "install assay as a whole (cmake --install): runs need it beside the program"});
  }
  plugin::SearchOptions readable = input.plugins;
  for (const plugin::SearchDir& dir : report.dirs) {
    const auto bad = std::find_if(report.unreadable.begin(), report.unreadable.end(),
                                  [&](const plugin::UnreadableDir& one) { return one.dir.path == dir.path; });
    if (bad == report.unreadable.end()) {
      findings->push_back({"plugins", "folder", State::kOk, dir.path.string(), ""});
      continue;
    }
    const bool needed = dir.trusted || dir.given;
    findings->push_back({"plugins", "folder", needed ? State::kProblem : State::kWarning,
                         dir.path.string() + " cannot be read: " + bad->reason,
                         "name a folder that exists with --plugin-path or ASSAY_PLUGIN_PATH"});
  }
  // One folder may be given in several spellings.
  std::erase_if(readable.plugin_path, [](const std::filesystem::path& path) {
    std::error_code code;
    const std::filesystem::directory_iterator entry(path, code);
    return static_cast<bool>(code);
  });
  for (const plugin::DoctorRow& row : report.rows) {
    const std::string name = row.kind.empty() ? row.file.filename().string() : row.kind + " " + row.name;
    if (!row.shadowed_by.empty()) {
      findings->push_back({"plugins", name, State::kWarning,
                           row.file.string() + " is shadowed by " + row.shadowed_by.string(), "remove one of the two"});
    } else if (row.ok) {
      findings->push_back({"plugins", name, State::kOk, fmt::format("{} (ABI {})", row.version, row.abi), ""});
    } else {
      findings->push_back({"plugins", name, State::kProblem, row.message, ""});
    }
  }
  const plugin::PluginRegistry registry(readable);
  run::BackendChoice backends(registry);
  size_t usable = 0;
  for (const std::string& name : registry.names(plugin::Kind::kBackend)) {
    const run::BackendState& state = backends.state(name);
    usable += state.preference > 0 ? 1 : 0;
    const std::string devices =
        state.device_variable.empty() ? "" : fmt::format(" ({}={})", state.device_variable, state.device_indices);
    findings->push_back({"backends", name, state.preference > 0 ? State::kOk : State::kWarning,
                         (state.preference > 0 ? "usable: " : "not usable: ") + state.device + devices, ""});
  }
  if (usable > 0) return;
  findings->push_back({"backends", "any", State::kProblem, "no backend can be used: engines that compute cannot run",
                       "build or install backend_cpu, or name its folder with --plugin-path"});
}

}  // namespace assay::doctor
