#include "core/run/training_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/run/case_digest.h"
#include "core/run/repeats.h"
#include "core/run/result_path.h"
#include "core/train/case_plan.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;

// Sets LD_* in ENV_VARS: foreign code in every process of the training.
Status check_environment(const TestCase& test) {
  for (const EnvVar& variable : test.env_vars) {
    if (!variable.name.starts_with("LD_")) continue;
    return invalid(
        fmt::format("{}:{}:{}: ENV_VARS sets {}, which loads foreign code into the training; allow it with "
                    "--allow-scripts or remove it",
                    test.config, variable.place.line, variable.place.column, variable.name));
  }
  return {};
}

}  // namespace

Result<PreparedCase> prepare_training(const TestCase& test, const std::string& id, const RunOptions& options,
                                      const CaseSettings& settings, std::chrono::milliseconds time_limit) {
  if (!options.allow_scripts) {
    if (Status checked = check_environment(test); !checked.ok()) return checked;
  }
  const discover::Variables variables = variables_of(options, settings);
  PreparedCase prepared;
  CaseOrder& order = prepared.order;
  order.dir = test.dir;
  order.golden = options.golden.string();
  order.tolerances = test.assay.tolerance;
  if (test.metrics) order.metrics = *test.metrics;
  const std::vector<CaseInput> inputs = {{"the golden", options.golden}};
  if (Status checked = check_result_path("OUTPUT_PATH", options.results, test, inputs); !checked.ok()) return checked;
  const Result<std::optional<int>> repeats = train::repeats_of(test, variables, kMostRepeats);
  if (!repeats) return repeats.status().with(test.config);
  order.repeats = options.repeat > 0 ? options.repeat : repeats->value_or(std::max(settings.repeat, 1));
  for (int repeat = 1; repeat <= order.repeats; ++repeat) {
    const std::string folder = folder_of_repeat(options.output, id, repeat).string();
    const fs::path own = fs::path(folder) / "actual.json";
    if (Status checked = check_result_path("--output", own, test, inputs); !checked.ok()) return checked;
    Result<train::CasePlan> plan = train::plan_case(
        test, variables, {.folder = folder, .repeat = repeat, .id = id, .allow_scripts = options.allow_scripts});
    if (!plan) return plan.status();
    plan->results = options.results.string();
    for (train::Job& job : plan->runs) {
      job.time_limit_s = static_cast<double>(time_limit.count()) / 1000;
      job.memory_limit = test.assay.memory_limit.value_or(0);
    }
    order.training.push_back(train::to_json(*plan));
    prepared.cost += static_cast<double>(plan->train_iters) * static_cast<double>(plan->runs.size());
  }
  order.engine_options = options.engine_options.empty() ? "{}" : options.engine_options;
  return prepared;
}

}  // namespace assay::run
