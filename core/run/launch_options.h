// How a run uses its launcher, whatever launcher it is: the member "workers" of the launcher's options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/run/plan.h"

namespace assay::run {

struct LaunchOptions {
  // What a group's job is cut into.
  int tasks = 0;           // tasks of a group; 0: --jobs, and 1 where that was not given
  int cases_per_task = 0;  // at most; 0: no limit
  // What one task asks for.
  int devices = -1;     // -1: one where the backend uses devices, else none
  int cpus = 0;         // 0: not said
  uint64_t memory = 0;  // bytes; 0: the largest ASSAY.memory_limit of its cases, if they have one
  double seconds = 0;   // time limit; 0: load, and what all cases of the task may take
  // When to give up.
  double heartbeat = 60;    // seconds without a sign of life of the runner after which workers end themselves
  double appear = 120;      // seconds from the start of a task to the first event that has to be seen
  double patience = 900;    // seconds for which the launcher's system may be out of reach
  int losses = 3;           // how often a task may be lost with its node before its cases are INFRA
  double poll = 2;          // seconds between two questions to the launcher; more while nothing happens
  double poll_most = 15;    // at most
  std::string plugin = {};  // JSON object: the other members, which are the launcher's own
};

// Takes `json`, a JSON object, apart ("" counts as {}). Fails with kInvalid: no object, an unknown member of "workers"
// (with the nearest name), a wrong type or range.
Result<LaunchOptions> parse_launch_options(const std::string& json);

// Indices `cases` cut into `tasks` tasks (more where `cases_per_task`, 0: any number, asks for it) of about equal cost:
// the costliest cases first into the cheapest task; within a task the order stays. `cases` is not empty. Pure.
std::vector<std::vector<size_t>> split_by_cost(const Plan& plan, const std::vector<size_t>& cases, size_t tasks,
                                               size_t cases_per_task);

}  // namespace assay::run
