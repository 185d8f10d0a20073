#include "core/compare/own_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::compare {
namespace {

using testing::HasSubstr;

constexpr int kBf16 = 8;

// Two generated tokens behind one logprob of the prompt; logits of 1.5, so that a ULP of bf16 is 2^-7.
RequestRecord judged_run() {
  RequestRecord record;
  record.id = "0";
  record.text = "ab";
  record.tokens = {5, 6};
  record.logprobs = {-1.0, -0.5, -0.5};
  return record;
}

RerunRequest fed_back() {
  RerunRequest again;
  again.id = "0";
  again.golden_tokens = {5, 6};
  for (const int32_t token : again.golden_tokens) {
    RerunPosition position;
    position.top = {{"t", -0.5, token}, {"u", -3.0, 40}};
    position.golden_logprob = -0.5;
    position.golden_logit = 1.5;
    again.positions.push_back(std::move(position));
  }
  again.record = judged_run();
  return again;
}

// The rerun prefers token 9 at the last position, `gap` nats above the token taken.
RerunRequest prefers_another(double gap) {
  RerunRequest again = fed_back();
  again.positions[1].top = {{"x", -0.5 + gap, 9}, {"t", -0.5, 6}};
  return again;
}

TEST(OwnRun, TokensThatTheEngineTakesContradictNothing) {
  EXPECT_EQ(own_contradiction(judged_run(), fed_back(), kBf16), "");
}

TEST(OwnRun, TheSecondBestTokenIsNoTieWhereTheNumbersDoNotVary) {
  const std::string line = own_contradiction(judged_run(), prefers_another(0.0078125), kBf16);
  EXPECT_THAT(line, HasSubstr("took 6 at its generated token 1, but after the same tokens the engine takes 9"));
  EXPECT_THAT(line, HasSubstr("0.00781 nats below it"));
}

TEST(OwnRun, EqualLogitsAreATie) { EXPECT_EQ(own_contradiction(judged_run(), prefers_another(0), kBf16), ""); }

TEST(OwnRun, WhereTheEnginesNumbersVaryTwoUlpsAreATieAndNoMore) {
  RequestRecord judged = judged_run();
  (*judged.logprobs)[1] = -0.5078125;
  EXPECT_EQ(own_contradiction(judged, prefers_another(0.0078125), kBf16), "");
  EXPECT_THAT(own_contradiction(judged, prefers_another(0.03125), kBf16), HasSubstr("the engine takes 9"));
}

TEST(OwnRun, ALogprobOfAnotherTokenDoesNotShowThatNumbersVary) {
  RequestRecord judged = judged_run();
  judged.logprobs->back() = -0.4921875;
  EXPECT_THAT(own_contradiction(judged, prefers_another(0.0078125), kBf16), HasSubstr("the engine takes 9"));
}

TEST(OwnRun, WithoutLogprobsNothingShowsThatNumbersVary) {
  RequestRecord judged = judged_run();
  judged.logprobs.reset();
  EXPECT_THAT(own_contradiction(judged, prefers_another(0.0078125), kBf16), HasSubstr("the engine takes 9"));
}

TEST(OwnRun, AnEndThatTheEngineDoesNotMakeIsTold) {
  RerunRequest on = fed_back();
  on.further = 3;
  EXPECT_THAT(own_contradiction(judged_run(), on, kBf16), HasSubstr("ends after 2 tokens, where the engine"));
  RerunRequest less = fed_back();
  less.positions.pop_back();
  EXPECT_THAT(own_contradiction(judged_run(), less, kBf16), HasSubstr("has 2 tokens, of which the engine"));
  RerunRequest refused = fed_back();
  refused.not_done = "the engine did not take the forced tokens";
  EXPECT_THAT(own_contradiction(judged_run(), refused, kBf16), HasSubstr("did not take the forced tokens"));
}

TEST(OwnRun, TheSameTokensGiveTheSameText) {
  EXPECT_EQ(text_contradiction("result", std::string("ab"), fed_back()), "");
  EXPECT_EQ(text_contradiction("result", std::nullopt, fed_back()), "");
  EXPECT_THAT(text_contradiction("result", std::string("aX"), fed_back()),
              HasSubstr("the same tokens give another text: result \"a|X\", engine \"a|b\""));
}

}  // namespace
}  // namespace assay::compare
