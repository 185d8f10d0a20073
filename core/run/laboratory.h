// Runs the ways of a metamorphic relation inside a worker: opens engines through the registry, models with other
// options, checkpoints written anew.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/metamorphic/way.h"
#include "core/plugin/registry.h"
#include "core/run/engine_session.h"
#include "core/run/loaded_model.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// For one thread. What it gets by pointer outlives it.
struct LaboratoryInput {
  const WorkerPlan* plan = nullptr;
  const CaseOrder* order = nullptr;
  const plugin::Plugin* engine = nullptr;  // of the case
  const LoadedModel* model = nullptr;      // of the group
  plugin::PluginRegistry* registry = nullptr;
  std::string scratch;  // folder for checkpoints written anew; removed with the laboratory
  // A request ended: the way it belongs to, and what SessionListener tells. May be empty.
  std::function<void(const std::string& way, const std::string& id, size_t tokens, double seconds)> finished = {};
  std::function<void(const std::string& way, const FailedRequest& failure)> failed = {};
};

class EngineLaboratory final : public metamorphic::Laboratory {
 public:
  explicit EngineLaboratory(LaboratoryInput input) : input_(std::move(input)) {}
  ~EngineLaboratory() override;
  EngineLaboratory(const EngineLaboratory&) = delete;
  EngineLaboratory& operator=(const EngineLaboratory&) = delete;

  std::optional<uint64_t> capabilities(const std::string& engine) const override;
  bool has_engine_option(const std::string& engine, const std::string& member) const override;
  bool has_backend_option(const std::string& member) const override;
  Result<metamorphic::WayResult> run(const metamorphic::Way& way) override;

  // Null for ways whose engine cannot be run again (EngineRerun::impossible). To be used before the next way runs.
  std::unique_ptr<compare::Rerun> rerun(const metamorphic::Way& way) override;

  // Of all ways so far: tokens and times, without records.
  const SessionResult& totals() const { return totals_; }

 private:
  Result<const plugin::Plugin*> engine_of(const std::string& name) const;
  // The group's model, or one opened for this way and kept for the next of the same kind.
  Result<const LoadedModel*> model_of(const metamorphic::Way& way);
  Result<std::string> resaved_checkpoint();
  Status run_calls(const metamorphic::Way& way, const CaseOrder& order, const EngineInput& engine,
                   metamorphic::WayResult* result);
  void add_totals(const SessionResult& session);
  // What an engine can do: of one that says so itself, what its last handle said.
  uint64_t found_of(const plugin::Plugin& engine) const;
  EngineInput input_of(const plugin::Plugin& engine, const LoadedModel& model) const;

  LaboratoryInput input_;
  std::optional<LoadedModel> other_model_;
  std::string other_model_of_;                     // what it was opened for
  SessionResult totals_;                           // `about`: of the case's engine
  mutable std::map<std::string, uint64_t> found_;  // engine → capabilities of its last handle
};

// The order of a way on this engine: options, outputs, sampling; without prompts.
CaseOrder order_of_way(const metamorphic::Way& way, const CaseOrder& order, const plugin::Plugin& engine,
                       bool own_engine);

}  // namespace assay::run
