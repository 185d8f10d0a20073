#include "core/compare/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::compare {
namespace {

ComparatorOptions of_dtype(std::string dtype) {
  ComparatorOptions options;
  options.dtype = std::move(dtype);
  return options;
}

TEST(Tolerance, WhatTheCaseGivesRulesAndZeroIsNoWordOfTheCase) {
  ComparatorOptions options;
  options.tolerance = 0.25;
  EXPECT_EQ(logprob_tolerance(options).source, "ASSAY.tolerance");
  EXPECT_EQ(margin_tolerance(options).source, "ASSAY.tolerance");
  options.tolerance = 0;  // also what a declared determinism level imposes
  EXPECT_EQ(logprob_tolerance(options).value, 0);
  EXPECT_EQ(logprob_tolerance(options).source, "equal values are demanded");
  EXPECT_EQ(margin_tolerance(options).source, "equal values are demanded");
}

TEST(LogprobTolerance, FollowsTheDtypeOfTheLogits) {
  EXPECT_EQ(logprob_tolerance({}).value, 1e-3);
  EXPECT_EQ(logprob_tolerance(of_dtype("fp32")).value, 1e-3);
  EXPECT_EQ(logprob_tolerance(of_dtype("bf16")).value, 0.125);     // 2 * 2^(3 + 1 - 8)
  EXPECT_EQ(logprob_tolerance(of_dtype("fp16")).value, 0.015625);  // 2 * 2^(3 + 1 - 11)
  EXPECT_EQ(logprob_tolerance(of_dtype("bf16")).source, "2 ULP of bf16 at logits of 8 to 16");
}

TEST(LogprobTolerance, FollowsTheLargestLogitWhereItIsKnown) {
  ComparatorOptions options = of_dtype("bf16");
  options.logit = 40;
  EXPECT_EQ(logprob_tolerance(options).value, 0.5);  // 2 * 2^(5 + 1 - 8)
  options.logit = 3;
  EXPECT_EQ(logprob_tolerance(options).value, 0.03125);
  EXPECT_EQ(logprob_tolerance(options).source, "2 ULP of bf16 at a logit of 3");
  options.logit = 0;
  EXPECT_EQ(logprob_tolerance(options).value, 1e-3);  // never below the one of fp32
  options = of_dtype("fp32");
  options.logit = 1e6;
  EXPECT_EQ(logprob_tolerance(options).value, 1e-3);
}

TEST(LogprobTolerance, RecordedNoiseRaisesTheDefaultAlone) {
  ComparatorOptions options;
  options.noise.max = 0.01;
  EXPECT_EQ(logprob_tolerance(options).value, 0.02);
  EXPECT_EQ(logprob_tolerance(options).source, "2 x the golden's noise");
  options.noise.max = 0.0001;
  EXPECT_EQ(logprob_tolerance(options).value, 1e-3);
  options.noise.max = 0.01;
  options.tolerance = 1e-5;
  EXPECT_EQ(logprob_tolerance(options).value, 1e-5);
  EXPECT_EQ(logprob_tolerance(options).source, "ASSAY.tolerance");
}

TEST(MarginTolerance, IsTwoUlpOfScoresUpToOne) {
  EXPECT_EQ(margin_tolerance({}).value, std::ldexp(1.0, -22));
  EXPECT_EQ(margin_tolerance(of_dtype("bf16")).value, 0.015625);
  ComparatorOptions options;
  options.noise.max = 0.25;
  EXPECT_EQ(margin_tolerance(options).value, 0.5);
  options.tolerance = 0;
  EXPECT_EQ(margin_tolerance(options).value, 0);
}

}  // namespace
}  // namespace assay::compare
