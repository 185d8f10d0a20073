#include "core/run/backend_choice.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "assay/sdk.hpp"
#include "core/plugin/host.h"
#include "core/plugin/probe.h"

namespace assay::run {
namespace {

constexpr std::chrono::seconds kProbeLimit{60};  // a GPU driver may take its time to wake up

// Runs in a child process: lines PREFERENCE, VARIABLE, INDICES, DEVICE; of an unusable one 0, "", "", REASON.
std::string describe(const std::filesystem::path& file) {
  const auto unusable = [](const std::string& reason) { return "0\n\n\n" + reason; };
  plugin::Plugin backend;
  if (const auto broken = plugin::load(file, plugin::silent_host(), &backend)) return unusable(broken->message);
  auto info = sdk::sized<assay_backend_info>();
  if (Status described = sdk::call(backend.backend()->describe, &info); !described.ok()) {
    return unusable(described.message());
  }
  return fmt::format("{}\n{}\n{}\n{}", std::max(info.usable, 0), sdk::text(info.device_variable),
                     sdk::text(info.device_indices), sdk::text(info.device));
}

// The next line of `text`, taken off it.
std::string take_line(std::string& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

BackendState parse_state(std::string text) {
  BackendState state;
  state.preference = std::stoi(take_line(text));
  state.device_variable = take_line(text);
  state.device_indices = take_line(text);
  state.device = std::move(text);
  return state;
}

}  // namespace

bool BackendChoice::exists(const std::string& name) const {
  const std::vector<std::string> names = registry_.names(plugin::Kind::kBackend);
  return std::find(names.begin(), names.end(), name) != names.end();
}

const BackendState& BackendChoice::state(const std::string& name) {
  const auto known = states_.find(name);
  if (known != states_.end()) return known->second;
  BackendState state;
  state.device = "there is no such backend";
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
      state = parse_state(report->text);
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
