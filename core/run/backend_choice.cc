#include "core/run/backend_choice.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>

#include "assay/sdk.hpp"
#include "core/plugin/host.h"
#include "core/plugin/probe.h"

namespace assay::run {
namespace {

constexpr std::chrono::seconds kProbeLimit{60};  // a GPU driver may take its time to wake up

// Runs in a child process: "PREFERENCE DEVICE" or "0 REASON".
std::string describe(const std::filesystem::path& file) {
  plugin::Plugin backend;
  if (const auto broken = plugin::load(file, plugin::silent_host(), &backend)) return "0 " + broken->message;
  auto info = sdk::sized<assay_backend_info>();
  if (Status described = sdk::call(backend.backend()->describe, &info); !described.ok()) {
    return "0 " + described.message();
  }
  return fmt::format("{} {}", std::max(info.usable, 0), sdk::text(info.device));
}

}  // namespace

bool BackendChoice::exists(const std::string& name) const {
  const std::vector<std::string> names = registry_.names(plugin::Kind::kBackend);
  return std::find(names.begin(), names.end(), name) != names.end();
}

const BackendState& BackendChoice::state(const std::string& name) {
  const auto known = states_.find(name);
  if (known != states_.end()) return known->second;
  BackendState state{0, "there is no such backend"};
  for (const plugin::Candidate& candidate : registry_.list().candidates) {
    if (candidate.claim.kind != plugin::Kind::kBackend || candidate.claim.name != name ||
        !candidate.shadowed_by.empty()) {
      continue;
    }
    const Result<plugin::ChildReport> report =
        plugin::run_in_child([&] { return describe(candidate.file); }, kProbeLimit);
    if (!report) {
      state.device = report.status().message();
    } else if (!report->finished) {
      state.device = report->hung ? "it hung while probed" : "it died with " + report->death + " while probed";
    } else {
      const size_t blank = report->text.find(' ');
      state.preference = std::stoi(report->text.substr(0, blank));
      state.device = report->text.substr(blank + 1);
    }
  }
  return states_.emplace(name, state).first->second;
}

Result<std::string> BackendChoice::best() {
  std::string best;
  std::string reasons;
  for (const std::string& name : registry_.names(plugin::Kind::kBackend)) {
    const BackendState& asked = state(name);
    if (asked.preference == 0) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name, asked.device);
    } else if (best.empty() || asked.preference > state(best).preference) {
      best = name;
    }
  }
  if (best.empty()) {
    return infra("no usable backend: " +
                 (reasons.empty() ? "no backend plugin was found; check --plugin-path" : reasons));
  }
  return best;
}

std::string default_platform(const std::string& backend) {
  utsname machine{};
  ::uname(&machine);
  const bool cpu = backend.empty() || backend == "cpu" || backend == "reference";
  return fmt::format("{}_{}", cpu ? "cpu" : backend, machine.machine);
}

}  // namespace assay::run
