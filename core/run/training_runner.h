// One training case inside a worker: the runs of its TEST_TYPE through the engine, verdict, events.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "core/plugin/plugin.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// For one thread. Everything it gets by reference outlives it.
class TrainingRunner {
 public:
  // `cancelled`: becomes true when the worker is to stop.
  TrainingRunner(const WorkerPlan& plan, const plugin::Plugin& engine, const std::atomic<bool>& cancelled,
                 std::function<void(const nlohmann::ordered_json&)> emit);

  // The events of CaseRunner::run, each run of the program as a request. False: the machine failed.
  bool run(const CaseOrder& order);

 private:
  struct Once;
  Once run_once(const CaseOrder& order, int repeat);
  void add_end(const Once& once, nlohmann::ordered_json* event) const;

  const WorkerPlan& plan_;
  const plugin::Plugin& engine_;
  const std::atomic<bool>& cancelled_;
  std::function<void(const nlohmann::ordered_json&)> emit_;
};

}  // namespace assay::run
