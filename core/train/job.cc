#include "core/train/job.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/golden/json_reason.h"
#include "core/golden/whole_number.h"

namespace assay::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostProcesses = 1 << 20;
constexpr int kMostPort = 65535;
constexpr double kMostSeconds = 1e9;  // 30 years; a clock in nanoseconds ends at 292

// Members once for both directions.
template <class Any, class Visit>
void visit_job(Any& job, Visit&& visit) {
  visit("name", job.name);
  visit("repeat", job.repeat);
  visit("run", job.run);
  visit("script", job.script);
  visit("script_is_program", job.script_is_program);
  visit("arguments", job.arguments);
  visit("environment", job.environment);
  visit("launcher", job.launcher);
  visit("max_restarts", job.max_restarts);
  visit("processes_per_node", job.processes_per_node);
  visit("nodes", job.nodes);
  visit("node_rank", job.node_rank);
  visit("master_address", job.master_address);
  visit("master_port", job.master_port);
  visit("folder", job.folder);
  visit("time_limit_s", job.time_limit_s);
  visit("memory_limit", job.memory_limit);
  visit("command", job.command);
  visit("before_script", job.before_script);
  visit("after_script", job.after_script);
}

template <class Any, class Visit>
void visit_folders(Any& folders, Visit&& visit) {
  visit("output", folders.output);
  visit("logs", folders.logs);
  visit("tensorboard", folders.tensorboard);
  visit("load", folders.load);
  visit("save", folders.save);
}

template <class T>
bool has_type_of(const Json& value, const T&) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, double>) return value.is_number();
  return value.is_structured();
}

template <class T>
void take(const Json& from, const std::string& path, const char* name, T& value) {
  const auto member = from.find(name);
  if (member == from.end()) return;
  constexpr bool kWhole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  try {
    if constexpr (kWhole) {
      value = json::whole<T>(*member);
    } else {
      if (!has_type_of(*member, value)) throw std::runtime_error("another type");
      member->get_to(value);
    }
  } catch (const std::exception&) {
    std::string expected = "another type is expected";
    if constexpr (kWhole) {
      expected = fmt::format("expected a whole number from {} to {}", std::numeric_limits<T>::min(),
                             std::numeric_limits<T>::max());
    }
    throw std::runtime_error(fmt::format("{}{} is {}: {}, see docs/training.md", path, name,
                                         member->dump(-1, ' ', true, Json::error_handler_t::replace), expected));
  }
}

Status check(const Job& job) {
  if (job.script.empty() && job.command.empty()) return invalid("script is empty: expected a script, or a command");
  if (job.launcher != "torchrun" && job.launcher != "ft_launcher") {
    return invalid(fmt::format("launcher is '{}': expected torchrun or ft_launcher", job.launcher));
  }
  const auto within = [](const char* name, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return Status();
    return invalid(fmt::format("{} is {}: expected {} to {}", name, value, least, most));
  };
  for (const Status& status :
       {within("repeat", job.repeat, 1, kMostProcesses), within("run", job.run, 1, kMostProcesses),
        within("max_restarts", job.max_restarts, 0, kMostProcesses),
        within("processes_per_node", job.processes_per_node, 1, kMostProcesses),
        within("nodes", job.nodes, 1, kMostProcesses), within("node_rank", job.node_rank, 0, int64_t{job.nodes} - 1),
        within("master_port", job.master_port, 0, kMostPort)}) {
    if (!status.ok()) return status;
  }
  if (!(job.time_limit_s >= 0 && job.time_limit_s <= kMostSeconds)) {
    return invalid(fmt::format("time_limit_s is {}: expected seconds from 0 to {}", job.time_limit_s, kMostSeconds));
  }
  return {};
}

}  // namespace

bool starts_as_program(std::string_view script) {
  std::string lower(script);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find("nemo") != std::string::npos;
}

std::string to_json(const Job& job) {
  Json json = Json::object();
  visit_job(job, [&](const char* name, const auto& value) { json[name] = value; });
  Json folders = Json::object();
  visit_folders(job.folders, [&](const char* name, const auto& value) { folders[name] = value; });
  json["folders"] = std::move(folders);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Job> parse_job(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return invalid("training job: expected a JSON object, see docs/training.md");
  Job job;
  try {
    visit_job(job, [&](const char* name, auto& value) { take(json, "", name, value); });
    if (const auto folders = json.find("folders"); folders != json.end()) {
      if (!folders->is_object()) return invalid("training job: folders is no object, see docs/training.md");
      visit_folders(job.folders, [&](const char* name, auto& value) { take(*folders, "folders.", name, value); });
    }
  } catch (const std::exception& failure) {
    return invalid(fmt::format("training job: {}", json::reason_of(failure.what())));
  }
  if (Status checked = check(job); !checked.ok()) return checked.with("training job");
  return job;
}

}  // namespace assay::train
