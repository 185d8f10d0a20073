// One case inside a worker: requests, actual.json, verdict, events.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "core/plugin/registry.h"
#include "core/run/deterministic_mode.h"
#include "core/run/engine_session.h"
#include "core/run/loaded_model.h"
#include "core/run/maker.h"
#include "core/run/quantities.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// For one thread. Everything it gets by reference outlives it.
class CaseRunner {
 public:
  CaseRunner(const WorkerPlan& plan, const plugin::Plugin& engine, const LoadedModel& model, double load_seconds,
             plugin::PluginRegistry& registry, std::function<void(const nlohmann::ordered_json&)> emit);

  // Emits case_started, request events and case_finished; for a case that is run more than once, repeat_started and
  // repeat_finished around each. Never fails: what goes wrong is the verdict. False: the machine failed under the
  // engine (a device that is lost stays lost to this process), so another case should get a new one.
  bool run(const CaseOrder& order);

 private:
  struct Files;
  struct Judged;
  LevelClaim claim_of(const EngineAbout& about) const;
  static bool machine_failed(const Judged& judged);
  static void add_end(const Judged& judged, const Files& files, nlohmann::ordered_json* event);
  void leave_no_result_of_before(const CaseOrder& order);
  bool run_repeats(const CaseOrder& order);
  Judged run_once(const CaseOrder& order, const Files& files);
  Judged run_and_judge(const CaseOrder& order, const Files& files);
  Judged run_relation(const CaseOrder& order, const Files& files);
  Result<SessionResult> run_passes(const CaseOrder& order, const EngineInput& input, Measured* measured);
  void report_restarts(const CaseOrder& order, Judged* judged);
  // `way`: of a relation; empty: none.
  void emit_finished(const CaseOrder& order, const std::string& id, size_t tokens, double seconds,
                     const std::string& way);
  void emit_failed(const CaseOrder& order, const FailedRequest& failure, const std::string& way);
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
