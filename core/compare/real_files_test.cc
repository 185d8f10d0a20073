// The gold-standard cases, judged with what Megatron-LM's static engine really printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class GoldCases : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(kGold)) GTEST_SKIP() << "no recorded results beside the source tree";
    folder_ = fs::path(testing::TempDir()) / ("gold_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ifstream corpus(kGold / "corpus.jsonl");
    for (std::string line; std::getline(corpus, line);) {
      const nlohmann::json document = nlohmann::json::parse(line);
      const std::string id = document.at("id").get<std::string>();
      if (id != "GPL-3.0-only" && id != "CC-BY-SA-4.0") continue;
      const fs::path path = folder_ / (id + ".txt");
      std::ofstream(path) << document.at("text").get<std::string>();
      options_.known.sources.push_back(path);
    }
    ASSERT_EQ(options_.known.sources.size(), 2U);
    options_.known.enabled = true;
    options_.metrics = {"generated_text"};
    options_.lookup = built_comparator;
  }
  void TearDown() override { fs::remove_all(folder_); }

  ResultSet recorded() const {
    Result<ResultSet> set = read_results(kGold / "cases/moe_10m_licences_b1/golden_values_dev_dgx_h200.json");
    EXPECT_TRUE(set.ok()) << set.status().message();
    return set.ok() ? *std::move(set) : ResultSet();
  }
  CaseVerdict judge(const std::string& test_case, const ResultSet& actual) const {
    const Result<ResultSet> golden =
        read_results(ASSAY_SOURCE_DIR "/testcases/moe/" + test_case + "/golden_values_dev_any.json");
    EXPECT_TRUE(golden.ok()) << golden.status().message();
    return judge_case({.options = &options_, .golden = &*golden, .golden_missing = "", .actual = &actual});
  }

  const fs::path kGold = ASSAY_SOURCE_DIR "/../shared/gold";
  fs::path folder_;
  JudgeOptions options_;
};

TEST_F(GoldCases, WhatTheModelPrintedIsTheKnownCompletion) {
  options_.metrics = {"generated_text", "generated_tokens"};
  const CaseVerdict verdict = judge("moe_10m_licences_fp32_b1", recorded());
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical) << verdict.reason;
  EXPECT_THAT(verdict.reason, HasSubstr("generated_tokens: 160 values of 2 requests"));
}

TEST_F(GoldCases, TheTextOnlyGoldenNeedsAsMuchTextAsItHolds) {
  const CaseVerdict verdict = judge("moe_10m_licences_text_only", recorded());
  EXPECT_EQ(verdict.verdict, Verdict::kInvalid);  // 80 tokens end before its 516 code points
  EXPECT_THAT(verdict.reason, HasSubstr("generated_text: request 1: the result is truncated"));
  EXPECT_EQ(verdict.metrics.back().findings[0].verdict, Verdict::kIdentical);
}

TEST_F(GoldCases, OneWrongWordDiverges) {
  ResultSet actual = recorded();
  std::string& text = *actual.requests[0].text;
  text.replace(text.find("contract"), 8, "contrast");
  const CaseVerdict verdict = judge("moe_10m_licences_fp32_b1", actual);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("contra|ct"));
}

}  // namespace
}  // namespace assay::compare
