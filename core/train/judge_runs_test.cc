#include "core/train/judge_runs.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/train/extract.h"
#include "core/train/metric_file.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// One run that has left an event file of testdata, and a golden of what it logged.
class JudgeRuns : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "tensorboard");
    Job job;
    job.folders.tensorboard = (root_ / "tensorboard").string();
    plan_.runs = {job};
    plan_.folder = root_.string();
    plan_.metrics = std::vector<std::string>{"iteration-time"};
    put("tensorboardx.tfevents");
    const Result<MetricSet> logged = extract_folder(job.folders.tensorboard, {});
    ASSERT_TRUE(logged.ok()) << logged.status().message();
    ASSERT_TRUE(write_metrics(golden_, *logged).ok());
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& fixture) {
    fs::copy_file(fs::path(ASSAY_SOURCE_DIR) / "core/train/testdata" / fixture, file_,
                  fs::copy_options::overwrite_existing);
  }
  CaseResult judged(const Result<std::string>& golden) const {
    CaseResult result;
    judge_runs(plan_, golden, &result);
    return result;
  }
  const fs::path root_ = fs::path(testing::TempDir()) / ("judge_runs_" + std::to_string(::getpid()));
  const fs::path file_ = root_ / "tensorboard/events.out.tfevents.1";
  const std::string golden_ = (root_ / "golden.json").string();
  CasePlan plan_;
};

TEST_F(JudgeRuns, BothSidesJudgeWhatTheRunLogged) {
  const CaseResult result = judged(golden_);
  EXPECT_EQ(result.verdict.verdict, Verdict::kIdentical) << result.verdict.reason;
  EXPECT_TRUE(result.compat.passes()) << result.compat.message;
  ASSERT_TRUE(result.actual);
  EXPECT_EQ(result.actual->metrics.size(), 2u);
  EXPECT_TRUE(fs::exists(root_ / "actual.json"));
}

TEST_F(JudgeRuns, AMetricThatIsLoggedUnderAnotherSpellingIsOursAlone) {
  plan_.metrics = std::vector<std::string>{"lm loss"};
  const CaseResult result = judged(golden_);
  EXPECT_EQ(result.verdict.verdict, Verdict::kIdentical) << "tensorboardX writes lm_loss: " << result.verdict.reason;
  EXPECT_FALSE(result.compat.passes());
}

TEST_F(JudgeRuns, ADamagedFileIsInvalidThoughTheyReadItUpToThere) {
  std::ofstream(file_, std::ios::binary | std::ios::app) << std::string(64, '\x55');
  const CaseResult result = judged(golden_);
  EXPECT_EQ(result.verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(result.verdict.reason, HasSubstr("wrong checksum"));
  EXPECT_TRUE(result.compat.passes()) << result.compat.message;
  EXPECT_FALSE(result.actual);
}

TEST_F(JudgeRuns, NumbersInTheFormOfTensorsAreOursAlone) {
  put("tensors.tfevents");
  const CaseResult result = judged(golden_);
  EXPECT_FALSE(result.compat.passes());
  EXPECT_THAT(result.compat.message, HasSubstr("the values of run 1"));
}

TEST_F(JudgeRuns, WithoutAGoldenNothingCanBeCompared) {
  const CaseResult none = judged(not_found("no golden for dgx_h100"));
  EXPECT_EQ(none.verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(none.verdict.reason, HasSubstr("no golden for dgx_h100"));
  EXPECT_TRUE(none.actual);
  const CaseResult folder = judged(root_.string());
  EXPECT_EQ(folder.verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(folder.verdict.reason, HasSubstr("is a folder; expected a file"));
  fs::remove(file_);
  const CaseResult silent = judged(golden_);
  EXPECT_EQ(silent.verdict.verdict, Verdict::kInvalid);
  EXPECT_THAT(silent.verdict.reason, HasSubstr("run 1: "));
  EXPECT_FALSE(silent.actual);
}

}  // namespace
}  // namespace assay::train
