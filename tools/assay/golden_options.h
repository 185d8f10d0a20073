// What the commands share that look at or change golden files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "core/compare/judge.h"
#include "core/govern/review.h"
#include "core/plugin/registry.h"
#include "core/run/run.h"
#include "tools/assay/command.h"

namespace assay::cli {

// True in continuous integration, where nothing is ever written: CI is set, and to something other than 0, false, no.
bool in_ci();

// In continuous integration, prints why `what` is refused and returns the exit code.
std::optional<int> refuse_in_ci(const std::string& what);

// The person at work: git's user.name, else the login name; empty: not known.
std::string user_name();

// Metric name → comparator, from `registry`, which must outlive it.
compare::ComparatorLookup comparators_of(plugin::PluginRegistry& registry);

// Where pending goldens that a word of the command line names are to be looked for.
struct PendingPlace {
  std::string word;             // as it was given
  std::string file;             // name of one pending file; empty: any
  std::vector<TestCase> cases;  // at least one
};

// CASE: a case folder, its model_config.yaml, a folder of cases or a pending file. kNotFound, kInfra: there is no such
// path, or no case in it.
Result<PendingPlace> find_pending_place(const std::string& word);

// The one pending golden that `place` and --environment, --platform and --pending-dir of `values` mean. kNotFound:
// none; kInvalid: several (names them), or a case that has no golden.
Result<govern::PendingItem> find_pending_item(const PendingPlace& place,
                                              const boost::program_options::variables_map& values,
                                              const compare::ComparatorLookup& lookup);

// Adds --pending-dir and --plugin-path.
void add_pending_options(boost::program_options::options_description* options);

// Listens to a run and says nothing.
class SilentObserver : public run::RunObserver {
 public:
  void run_started(const run::RunInfo& info) override { run_id_ = info.run_id; }
  void case_started(const std::string& /*name*/, const std::string& /*worker*/) override {}
  void case_finished(const run::CaseOutcome& /*outcome*/) override {}
  void note(const std::string& /*event*/, const std::string& /*line*/) override {}
  void run_finished(const run::RunSummary& /*summary*/) override {}
  const std::string& run_id() const { return run_id_; }

 private:
  std::string run_id_;
};

}  // namespace assay::cli
