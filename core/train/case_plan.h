// From a training case to the runs of one repeat of it: TEST_TYPE as phases, folders, arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/status.h"
#include "core/discover/substitute.h"
#include "core/train/compat.h"
#include "core/train/job.h"
#include "core/train/judge.h"

namespace assay::train {

enum class TestType : uint8_t {
  kRegular,  // also every word that Megatron-LM does not know
  kFrozenStart,
  kCkptResume,
  kFrozenResume,
  kCheckpointConsistency,
  kRelease,
};

// Where the files of one repeat go.
struct PlanRequest {
  std::string folder;  // of the repeat, absolute; everything that is not set below it
  int repeat = 1;
  std::string id = {};         // tells the case from all others of the run, on every node alike; empty: its name does
  bool allow_scripts = false;  // BEFORE_SCRIPT and AFTER_SCRIPT
};

// Barriers of a training that runs on several nodes, each of which has an assay of its own.
struct NodeMeeting {
  std::string folder;  // of this case alone; empty: one node
  double seconds = 900;
};

// Everything about one repeat: plain data.
struct CasePlan {
  std::string name;
  TestType type = TestType::kRegular;
  bool rl = false;
  int repeat = 1;
  int64_t train_iters = 100;      // last step that is looked at
  std::string uncompared;         // why nothing is compared, "ENABLE_LIGHTWEIGHT_MODE"; empty: it is
  bool xpass = false;             // TEST_EVALUATION: the program may fail
  bool record = false;            // RECORD_CHECKPOINTS
  std::string frozen;             // CHECKPOINT_LOAD_PATH as given; empty: not given
  std::string folder;             // of the repeat
  std::string results;            // where the values of run 1 go besides actual.json; empty: nowhere. Those of a second
                                  // run: the same with _2nd before its ending
  std::vector<Job> runs;          // in order, a second one of a resuming case included
  std::vector<std::string> made;  // folders to make before the runs
  std::optional<std::vector<std::string>> metrics;
  bool metrics_is_null = false;
  bool nondeterministic = false;
  std::map<std::string, double> tolerances;
  std::optional<std::string> throughput_start;  // THROUGHPUT_START_STEP as written
  NodeMeeting meeting;

  bool resumes() const { return type == TestType::kCkptResume || type == TestType::kFrozenResume; }
  // Fails with kInvalid where THROUGHPUT_START_STEP of an rl case is no number.
  Result<JudgeRules> rules() const;
  CompatMetrics compat_metrics() const;
};

// What `test` says by itself of how it is judged: without runs, folders and variables.
CasePlan facts_of(const TestCase& test);

// Variables that say where things are, and what else Megatron-LM's script takes, are looked up in `variables`
// (docs/training.md). Fails with kInvalid (unset variables, no training script, numbers that are none) or kUnsupported
// (scripts without allow_scripts).
Result<CasePlan> plan_case(const TestCase& test, const discover::Variables& variables, const PlanRequest& request);

// How often the script would run the case, as it is written or has to be: once where nothing is compared, else
// ENV_VARS.N_REPEAT, else the variable; nullopt: nothing says so, and whoever runs the case may. Fails with kInvalid
// where the number is none from 1 to `most`.
Result<std::optional<int>> repeats_of(const TestCase& test, const discover::Variables& variables, int most);

std::string to_json(const CasePlan& plan);
Result<CasePlan> parse_case_plan(const std::string& json);

}  // namespace assay::train
