// The real cases through the real programs: what a newcomer runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(GoldCases, EveryCaseOfTheTreeIsIdenticalToTheLicenceText) {
  const TemporaryFolder folder;
  const std::string filter = "not *self_test* and not *@* and not tag:weights_16b";  // those ask more, or other weights
  const Output run =
      run_program("assay", {"run", "testcases", "--filter", filter, "--json", "--output", folder / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const json cases = json::parse(run.out);
  EXPECT_GE(cases.size(), 5U);
  for (const json& one : cases) {
    EXPECT_EQ(one["verdict"], "IDENTICAL") << one.dump(1);
    EXPECT_EQ(one["requests"], 2) << one.dump(1);
  }
}

TEST(GoldCases, TheLicenceTextIsInTheResultsFile) {
  const TemporaryFolder folder;
  const Output run =
      run_program("assay", {"run", "testcases/moe/moe_10m_licences_text_only", "--output", folder / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  std::string actual;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (entry.path().filename() == "actual.json") actual = read_file(entry.path());
  }
  EXPECT_THAT(actual, HasSubstr("You can apply it to your programs, too."));
  EXPECT_THAT(read_file(folder / "out/junit.xml"), HasSubstr("failures=\"0\" errors=\"0\""));
  EXPECT_THAT(read_file(folder / "out/results.jsonl"), HasSubstr("run_finished"));
}

TEST(GoldCases, TheReferenceBackendAgrees) {
  const TemporaryFolder folder;
  const Output run = run_program("assay", {"run", "testcases/moe/moe_10m_licences_bf16_b1", "--backend", "reference",
                                           "--json", "--output", folder / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(json::parse(run.out)[0]["backend"], "reference");
}

// fp32 results that Megatron-LM's static engine gave on an H200. The bf16 ones hold exact ties and are left out.
TEST(Vectors, EveryFp32CaseAgreesWithin1e5) {
  const std::filesystem::path shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << "the shared folder of test data is not beside this checkout";
  const TemporaryFolder folder;
  const std::string root = (shared / "vectors").string();
  const Output run =
      run_program("assay", {"run", root + "/cases", "--set", "CHECKPOINT_LOAD_PATH=" + root, "--platform", "dgx_h200",
                            "--filter", "not *bf16*", "--json", "--output", folder / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const json cases = json::parse(run.out);
  EXPECT_EQ(cases.size(), 8U);
  double largest = 0;
  for (const json& one : cases) {
    ASSERT_TRUE(one["max_abs_logprob_difference"].is_number()) << one.dump(1);
    largest = std::max(largest, one["max_abs_logprob_difference"].get<double>());
  }
  EXPECT_LE(largest, 1e-5);
  RecordProperty("max_abs_logprob_difference", std::to_string(largest));
}

TEST(Vectors, EveryFp32CaseAgreesOnTheBufferedEngineToo) {
  const std::filesystem::path shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << "the shared folder of test data is not beside this checkout";
  const TemporaryFolder folder;
  const std::string root = (shared / "vectors").string();
  const Output run =
      run_program("assay", {"run", root + "/cases", "--set", "CHECKPOINT_LOAD_PATH=" + root, "--platform", "dgx_h200",
                            "--engine", "buffered", "--filter", "not *bf16*", "--json", "--output", folder / "out"});
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const json cases = json::parse(run.out);
  EXPECT_EQ(cases.size(), 8U);
  for (const json& one : cases) {
    EXPECT_EQ(one["engine"], "buffered");
    EXPECT_LE(one["max_abs_logprob_difference"].get<double>(), 1e-5) << one.dump(1);
  }
}

TEST(Vectors, TheGoldResultsOfTheH200AgreeInTextAndTokens) {
  const std::filesystem::path shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << "the shared folder of test data is not beside this checkout";
  const TemporaryFolder folder;
  const std::string root = (shared / "gold").string();
  const Output run = run_program("assay", {"run", root + "/cases", "--set", "CHECKPOINT_LOAD_PATH=" + root,
                                           "--platform", "dgx_h200", "--output", folder / "out"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

}  // namespace
}  // namespace assay::tests
