#include "core/compare/near_tie.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/compare/logit_dtype.h"
#include "core/compare/ulp.h"

namespace assay::compare {
namespace {

TEST(NearTie, TwoUlpsOfTheLargerLogitAreTheLimit) {
  const TieRule rule = tie_rule(8, 8, 0);
  EXPECT_EQ(rule.ulps, 2);
  EXPECT_TRUE(measure_gap(rule, -1, -1 - 0.03125, 3.0).near_tie) << "2 ULP of bf16 in 2 .. 4";
  EXPECT_FALSE(measure_gap(rule, -1, -1 - 0.046875, 3.0).near_tie) << "3 ULP";
  EXPECT_FALSE(measure_gap(rule, -1, -1 - 0.03125, 1.5).near_tie) << "4 ULP in 1 .. 2";
  EXPECT_EQ(measure_gap(rule, -1, -1.03125, 3.0).ulps, 2);
  EXPECT_TRUE(measure_gap(rule, -1, -1, std::nullopt).near_tie);
  EXPECT_FALSE(measure_gap(rule, -1, -1.0625, std::nullopt).near_tie) << "an unknown logit is taken to be small";
  EXPECT_FALSE(measure_gap(rule, -1, -INFINITY, 3.0).near_tie);
}

TEST(NearTie, RecordedNoiseAndOtherArithmeticWidenIt) {
  EXPECT_TRUE(measure_gap(tie_rule(24, 24, 0.01), -1, -1.01, 3.0).near_tie);
  EXPECT_FALSE(measure_gap(tie_rule(24, 24, 0), -1, -1.01, 3.0).near_tie);
  const TieRule mixed = tie_rule(8, 24, 0);
  EXPECT_EQ(mixed.mantissa, 8);
  EXPECT_EQ(mixed.ulps, kUlpsOtherDtype);
  EXPECT_EQ(mixed.arithmetic, "arithmetic differs: golden bf16, run fp32");
  EXPECT_EQ(tie_rule(24, 8, 0).arithmetic, "arithmetic differs: golden fp32, run bf16");
  EXPECT_EQ(tie_rule(std::nullopt, 8, 0).mantissa, 8);
  EXPECT_EQ(tie_rule(std::nullopt, std::nullopt, 0).mantissa, 24);
}

double rounded(double value, int mantissa) {
  const double unit = ulp(mantissa, value);
  return unit * std::round(value / unit);
}

// A golden of one request whose logits have `mantissa` bits, and a rerun with logits off by `error`.
struct Made {
  ResultSet golden;
  RerunResult rerun;
};

Made make(int mantissa, double error, bool lists) {
  std::mt19937 random(7);
  std::normal_distribution<double> logits(3, 0.8);
  std::normal_distribution<double> errors(0, error);
  Made made;
  RequestRecord record;
  record.id = "0";
  record.tokens.emplace();
  record.logprobs.emplace();
  if (lists) record.top_n.emplace();
  RerunRequest again;
  again.id = "0";
  for (int32_t i = 0; i < 48; ++i) {
    const double z = 7.31 + 0.037 * i;
    const double logit = rounded(logits(random), mantissa);
    record.tokens->push_back(i);
    record.logprobs->push_back(static_cast<float>(logit - z));
    for (int entry = 0; lists && entry < 5; ++entry) {
      record.top_n->entries.push_back({"t", static_cast<float>(rounded(logits(random), mantissa) - z), -1});
    }
    if (lists) record.top_n->counts.push_back(5);
    RerunPosition position;
    position.golden_logit = logit + errors(random);
    position.golden_logprob = *position.golden_logit - z - errors(random) / 8;
    again.positions.push_back(position);
  }
  made.golden.requests.push_back(std::move(record));
  made.rerun.requests.push_back(std::move(again));
  return made;
}

TEST(LogitDtype, IsToldByTheGoldensLogprobsOnTheGridOfItsLogits) {
  for (const bool lists : {false, true}) {
    for (const int mantissa : {8, 24}) {
      const Made made = make(mantissa, 0.008, lists);
      EXPECT_EQ(infer_mantissa(made.golden, &made.rerun), mantissa) << lists;
    }
  }
  const Made half = make(11, 0.008, true);
  EXPECT_EQ(infer_mantissa(half.golden, &half.rerun), 11);
}

TEST(LogitDtype, ListsAloneTellItAndLogprobsAloneDoNot) {
  EXPECT_EQ(infer_mantissa(make(8, 0, true).golden, nullptr), 8);
  EXPECT_EQ(infer_mantissa(make(24, 0, true).golden, nullptr), 24);
  EXPECT_EQ(infer_mantissa(make(8, 0, false).golden, nullptr), std::nullopt);
}

TEST(LogitDtype, ListsOffTheGridContradictACoarseDtype) {
  EXPECT_TRUE(off_grid(make(24, 0, true).golden, 8));
  EXPECT_FALSE(off_grid(make(24, 0, true).golden, 24));
  EXPECT_FALSE(off_grid(make(8, 0, true).golden, 8));
  EXPECT_FALSE(off_grid(make(11, 0, true).golden, 11));
  EXPECT_FALSE(off_grid(make(24, 0, false).golden, 8)) << "no lists, nothing to tell";
}

TEST(LogitDtype, AnEngineFarFromTheGoldenTellsNothing) {
  const Made made = make(8, 1.0, false);
  EXPECT_EQ(infer_mantissa(made.golden, &made.rerun), std::nullopt);
}

}  // namespace
}  // namespace assay::compare
