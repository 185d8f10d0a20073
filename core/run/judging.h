// From results to a verdict, inside a worker.
#pragma once

#include <string>

#include "assay/golden.h"
#include "assay/verdict.h"
#include "core/plugin/registry.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// Reads the golden that counts for this case, environment and platform and judges `actual` by the comparators of the
// case's METRICS. Whatever is missing is part of the verdict. `engine` names the capabilities that explain what is
// missing.
CaseVerdict judge_results(const WorkerPlan& plan, const CaseOrder& order, const ResultSet& actual,
                          const plugin::Plugin& engine, plugin::PluginRegistry& registry);

}  // namespace assay::run
