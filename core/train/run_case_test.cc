#include "core/train/run_case.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/discover/case_reader.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunCase : public testing::Test {
 protected:
  ~RunCase() override { fs::remove_all(root_); }

  // A case on one of two nodes, on which the program ends with `exit_code`; nothing is compared.
  CaseResult run(const std::string& name, int rank, int exit_code) const {
    TestCase test;
    test.name = name;
    test.config = name + "/model_config.yaml";
    discover::read_config("TEST_TYPE: regular\nENV_VARS:\n  SKIP_PYTEST: 1\nMODEL_ARGS:\n  --train-iters: 1\n", test,
                          /*needs_model_args=*/true);
    discover::Variables variables;
    variables.set = {{"TRAINING_SCRIPT_PATH", "train.py"},
                     {"NUM_NODES", "2"},
                     {"NODE_RANK", std::to_string(rank)},
                     {"OUTPUT_PATH", (root_ / "shared").string()},
                     {"RUN_CI_BARRIER_TIMEOUT", "30"}};
    const Result<CasePlan> plan =
        plan_case(test, variables, {.folder = (root_ / ("node_" + std::to_string(rank)) / name).string(), .repeat = 1});
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    const Result<std::string> golden = not_found("no golden");
    return run_case(*plan, golden, {.train = [&](const Job&) {
      return Result<RunEnd>(RunEnd{.exit_code = exit_code, .message = ""});
    }});
  }

  const fs::path root_ = fs::path(testing::TempDir()) / ("run_case." + std::to_string(::getpid()));
};

TEST_F(RunCase, OneCaseThatFailsOnANodeFailsNoOtherCaseOfTheRun) {
  std::vector<CaseResult> second(2);
  std::thread other([&] {
    run("a/case", 1, 3);
    second[1] = run("a/other", 1, 0);
  });
  const CaseResult first = run("a/case", 0, 0);
  second[0] = run("a/other", 0, 0);
  other.join();
  EXPECT_EQ(first.verdict.verdict, Verdict::kCrashed);
  EXPECT_THAT(first.verdict.reason, HasSubstr("another node failed with exit code 3"));
  for (const CaseResult& one : second) EXPECT_EQ(one.verdict.verdict, Verdict::kSkipped) << one.verdict.reason;
}

// A checkpoint recorded for frozen-resume whose tracker was not written would have the next run begin at its end.
TEST_F(RunCase, ATrackerThatCannotBeWrittenIsInfra) {
  TestCase test;
  test.name = "case";
  test.config = "case/model_config.yaml";
  discover::read_config("TEST_TYPE: frozen-resume\nMODEL_ARGS:\n  --train-iters: 4\n", test,
                        /*needs_model_args=*/true);
  discover::Variables variables;
  fs::create_directories(root_ / "frozen/iter_0000002");
  variables.set = {{"TRAINING_SCRIPT_PATH", "train.py"},
                   {"RECORD_CHECKPOINTS", "true"},
                   {"CHECKPOINT_LOAD_PATH", (root_ / "frozen").string()}};
  const Result<CasePlan> plan = plan_case(test, variables, {.folder = (root_ / "out").string(), .repeat = 1});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto verdict_with = [&](const std::string& tracker) {
    const Result<std::string> golden = not_found("no golden");
    return run_case(*plan, golden,
                    {.train =
                         [&](const Job& job) {
                           const fs::path file = fs::path(job.folders.save) / "latest_checkpointed_iteration.txt";
                           fs::create_directories(file.parent_path());
                           fs::remove(file);
                           if (!tracker.empty()) fs::create_symlink(tracker, file);
                           return Result<RunEnd>(RunEnd{.message = ""});
                         }})
        .verdict;
  };
  EXPECT_EQ(verdict_with("").verdict, Verdict::kSkipped) << verdict_with("").reason;
  for (const char* tracker : {"/dev/full", "/nowhere/file"}) {  // a full disk, a lost folder
    EXPECT_EQ(verdict_with(tracker).verdict, Verdict::kInfra) << tracker;
    EXPECT_THAT(verdict_with(tracker).reason, HasSubstr("latest_checkpointed_iteration.txt: cannot be written"));
  }
}

}  // namespace
}  // namespace assay::train
