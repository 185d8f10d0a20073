// From cases to groups that share one load.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plugin/registry.h"
#include "core/run/compat.h"
#include "core/run/run.h"
#include "core/run/waive.h"
#include "core/run/worker_plan.h"

namespace assay::run {

struct PlannedCase {
  CaseOutcome outcome;   // name, path, model, metrics, reproduce; verdict once settled
  bool settled = false;  // its verdict stands without running it (INVALID, SKIPPED)
  std::string digest;    // case_digest() of its case
  CaseOrder order;       // unless settled
  std::chrono::milliseconds timeout{};
  uint64_t memory_limit = 0;  // bytes; 0: that of the run
  double cost = 0;            // estimate of the work, arbitrary unit: longest first
  std::string environment;    // whose goldens judge it
  Declarations declarations;
  CompatCase compat;  // used where Plan::compat
};

// How the worker of a group is bound to one device.
struct DeviceUse {
  std::string variable;              // environment variable that shows it the device; empty: it is not bound
  std::vector<std::string> devices;  // values of the variable, one a device; not empty where there is a variable
  int32_t workers = 1;               // that may be on its device, itself included
};

// Cases of one worker at a time.
struct Group {
  WorkerPlan head;                                 // without `worker` and `cases`
  std::map<std::string, std::string> env_vars;     // ENV_VARS of its cases
  std::map<std::string, std::string> environment;  // of the worker: inherited variables, ENV_VARS over them
  std::vector<size_t> cases;                       // indices of Plan::cases, in the order of the run
  double cost = 0;
  DeviceUse device;
  bool recorded = false;  // its engine reads recorded results: nothing is loaded, the cases may be spread over workers
};

struct Plan {
  std::vector<PlannedCase> cases;  // every selected case, in the order of RunOptions::cases; one a relation where
                                   // relations judge
  std::vector<Group> groups;       // longest first
  size_t filtered = 0;
  std::string today;          // UTC, for waivers
  ShardInfo shard;            // index 0: the run is no shard
  std::string shard_file;     // text of shards.json; empty: the run is no shard
  uint64_t first_worker = 0;  // number of the first worker to start: those before are of the run that is resumed
  bool compat = false;        // every verdict gets that of Megatron-LM's comparator beside it
};

// Makes the plan. What is wrong with one case settles that case and no other. Fails with kInvalid when the filter, or
// an engine or backend named for the whole run, cannot be used. Starts child processes to examine plugins and backends.
Result<Plan> make_plan(const RunOptions& options, plugin::PluginRegistry& registry);

}  // namespace assay::run
