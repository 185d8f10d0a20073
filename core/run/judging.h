// From results to a verdict, inside a worker.
#pragma once

#include <string>

#include "assay/golden.h"
#include "assay/provenance.h"
#include "assay/verdict.h"
#include "core/compare/rerun.h"
#include "core/plugin/registry.h"
#include "core/run/engine_about.h"
#include "core/run/worker_plan.h"

namespace assay::run {

struct Judging {
  const WorkerPlan* plan = nullptr;  // all borrowed, none null but the last two
  const CaseOrder* order = nullptr;
  const EngineAbout* about = nullptr;          // of the engine that ran: it explains what is missing
  plugin::PluginRegistry* registry = nullptr;  // of comparators
  compare::Rerun* rerun = nullptr;             // null: the engine cannot be run again, no_rerun says why
  std::string no_rerun = "no engine to run again";
  const Provenance* provenance = nullptr;  // of the results; null: not known
};

// Reads the golden that counts for this case, environment and platform and judges `actual` by the comparators of the
// case's METRICS. Whatever is missing is part of the verdict.
CaseVerdict judge_results(const Judging& judging, const ResultSet& actual);

}  // namespace assay::run
