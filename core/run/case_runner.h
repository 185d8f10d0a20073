// One case inside a worker: requests, actual.json, verdict, events.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "core/plugin/registry.h"
#include "core/run/engine_session.h"
#include "core/run/loaded_model.h"
#include "core/run/maker.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// For one thread. Everything it gets by reference outlives it.
class CaseRunner {
 public:
  CaseRunner(const WorkerPlan& plan, const plugin::Plugin& engine, const LoadedModel& model, double load_seconds,
             plugin::PluginRegistry& registry, std::function<void(const nlohmann::ordered_json&)> emit);

  // Emits case_started, request events and case_finished. Never fails: what goes wrong is the verdict.
  void run(const CaseOrder& order);

 private:
  struct Files;
  struct Judged;
  Judged run_and_judge(const CaseOrder& order, const Files& files);
  void explain(const CaseOrder& order, Judged* judged);

  const WorkerPlan& plan_;
  const plugin::Plugin& engine_;
  const LoadedModel& model_;
  const double load_seconds_;
  Maker maker_;
  plugin::PluginRegistry& registry_;
  std::function<void(const nlohmann::ordered_json&)> emit_;
};

}  // namespace assay::run
