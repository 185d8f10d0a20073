// From a case's config to what an engine is asked to do: substitution, argument classes, prompts, model.
#pragma once

#include <map>
#include <string>

#include "assay/case.h"
#include "backends/model/args_record.h"
#include "core/discover/engine_options.h"
#include "core/discover/substitute.h"
#include "core/plugin/plugin.h"
#include "core/run/foreign_case.h"
#include "core/run/run.h"
#include "core/run/worker_plan.h"

namespace assay::run {

// Everything about a case that does not depend on the other cases of the run.
struct PreparedCase {
  std::string model = "{}";                     // WorkerPlan::model; cases with equal texts share one load
  CaseOrder order;                              // without `id` and `name`
  std::map<std::string, std::string> env_vars;  // substituted
  double cost = 0;                              // estimate of the work, arbitrary unit
};

// Prepares the cases of one run. Remembers what checkpoints say of themselves, so that each is opened once. For one
// thread.
class CasePreparer {
 public:
  // `options` outlives the preparer.
  explicit CasePreparer(const RunOptions& options);

  // `id` names the case's folder below cases/. With `golden` false the case is judged by a relation: known completions
  // are not looked for, --output-path is not written, and `cost` is that of one token. Fails with the line that becomes
  // the verdict: unset variables, arguments that are unknown or cannot be honoured, prompts or a checkpoint that are
  // missing, LD_* in ENV_VARS or scripts without allow_scripts, scripts for an engine that runs none (kInvalid,
  // kNotFound, kUnsupported); a disk that fails (kInfra).
  // `settings.timeout` is that of the case.
  Result<PreparedCase> prepare(const TestCase& test, const std::string& id, const plugin::Plugin& engine, bool golden,
                               const CaseSettings& settings);

 private:
  Status check_scripts(const TestCase& test, const plugin::Plugin& engine) const;
  Status take_env_vars(const TestCase& test, PreparedCase* prepared) const;
  static Status check_results(const TestCase& test, const CaseOrder& order, const discover::EngineOptions& options,
                              const std::filesystem::path& own);
  static Status take_known_completion(const TestCase& test, CaseOrder* order);
  ForeignLimits limits_of(const TestCase& test, const CaseSettings& settings) const;
  Result<discover::EngineOptions> resolve(const TestCase& test, const model::ArgRecord& given,
                                          const plugin::Plugin& engine, PreparedCase* prepared);
  Result<std::string> find_recorded(const TestCase& test, const std::string& id, const CaseSettings& settings) const;
  const Result<model::ArgRecord>& checkpoint_args(const std::string& folder);

  const RunOptions& options_;
  discover::Variables variables_;  // of the case that was prepared last
  std::map<std::string, Result<model::ArgRecord>> checkpoint_args_;
};

}  // namespace assay::run
