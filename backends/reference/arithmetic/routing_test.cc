#include "backends/reference/arithmetic/routing.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "backends/reference/arithmetic/elementary.h"

namespace assay::arithmetic {
namespace {

using ::testing::ElementsAre;

struct Choice {
  std::vector<uint16_t> experts;
  std::vector<float> weights;
  float margin = 0;
};

Choice choose(const model::MoeConfig& moe, std::vector<float> logits, std::vector<float> bias = {}) {
  Choice choice{std::vector<uint16_t>(static_cast<size_t>(moe.topk)), std::vector<float>(static_cast<size_t>(moe.topk)),
                0};
  std::vector<float> scratch(4 * logits.size());
  choice.margin =
      choose_experts(moe, logits.data(), bias, scratch.data(), choice.experts.data(), choice.weights.data());
  return choice;
}

model::MoeConfig sigmoid_router(int experts, int topk) {
  model::MoeConfig moe;
  moe.experts = experts;
  moe.topk = topk;
  moe.score = model::RouterScore::kSigmoid;
  return moe;
}

TEST(Router, TiesGoToTheLowerExpert) {
  EXPECT_THAT(choose(sigmoid_router(6, 3), {1, 2, 1, 2, 1, 1}).experts, ElementsAre(0, 1, 3));
}

TEST(Router, SigmoidWeightsAddUpToTheScalingFactor) {
  model::MoeConfig moe = sigmoid_router(4, 2);
  moe.scaling_factor = 2.5;
  const Choice choice = choose(moe, {0, 3, -1, 1});
  EXPECT_THAT(choice.experts, ElementsAre(1, 3));
  EXPECT_NEAR(choice.weights[0] + choice.weights[1], 2.5, 1e-6);
}

TEST(Router, OneChosenSigmoidExpertKeepsItsScore) {
  EXPECT_NEAR(choose(sigmoid_router(3, 1), {0, 1, -1}).weights[0], 1 / (1 + std::exp(-1.0)), 1e-7);
}

TEST(Router, ExpertBiasMovesTheChoiceButNotTheWeights) {
  const Choice choice = choose(sigmoid_router(3, 1), {0, 1, -1}, {0, 0, 5});
  EXPECT_THAT(choice.experts, ElementsAre(2));
  EXPECT_NEAR(choice.weights[0], 1 / (1 + std::exp(1.0)), 1e-7);
}

TEST(Router, SoftmaxAfterTheChoiceAddsUpToOneAndBeforeItDoesNot) {
  model::MoeConfig moe;
  moe.experts = 4;
  moe.topk = 2;
  const Choice after = choose(moe, {0, 1, 2, 3});
  EXPECT_NEAR(after.weights[0] + after.weights[1], 1, 1e-6);
  moe.pre_softmax = true;
  const Choice before = choose(moe, {0, 1, 2, 3});
  EXPECT_NEAR(before.weights[1], std::exp(3.0) / (1 + std::exp(1.0) + std::exp(2.0) + std::exp(3.0)), 1e-6);
}

TEST(Router, GroupsAreJudgedByTheirBestMembers) {
  model::MoeConfig moe = sigmoid_router(6, 2);
  moe.groups = 3;
  moe.group_topk = 1;  // a group's score: its best two
  // Group 1 has the best expert, group 2 the best pair.
  EXPECT_THAT(choose(moe, {0, 0, 5, -9, 3, 3}).experts, ElementsAre(4, 5));
}

TEST(Router, NanLogitsStillGiveDistinctValidExperts) {
  const Choice choice = choose(sigmoid_router(4, 3), {NAN, NAN, NAN, 1});
  EXPECT_THAT(choice.experts, ElementsAre(0, 1, 3));
}

// Every set of topk experts that the router may choose, the plain way: scores by hand, groups by hand, then a sort.
float brute_force_margin(const model::MoeConfig& moe, const std::vector<float>& logits,
                         const std::vector<float>& bias) {
  std::vector<float> scores = logits;
  if (moe.score == model::RouterScore::kSigmoid) {
    for (float& s : scores) s = sigmoid<Single>(s);
  }
  for (size_t e = 0; e < scores.size() && !bias.empty(); ++e) scores[e] = scores[e] + bias[e];
  const size_t groups = static_cast<size_t>(std::max(moe.groups, 1));
  const size_t size = scores.size() / groups;
  std::vector<std::pair<float, size_t>> order;  // (minus group score, group)
  for (size_t g = 0; g < groups; ++g) {
    std::vector<float> members(scores.begin() + static_cast<ptrdiff_t>(g * size),
                               scores.begin() + static_cast<ptrdiff_t>((g + 1) * size));
    std::sort(members.rbegin(), members.rend());
    float total = 0;
    for (int i = 0; moe.groups > 0 && i < moe.topk / moe.group_topk; ++i) total += members[static_cast<size_t>(i)];
    order.emplace_back(-total, g);
  }
  std::sort(order.begin(), order.end());
  std::vector<float> candidates;
  for (size_t i = 0; i < (moe.groups > 0 ? static_cast<size_t>(moe.group_topk) : 1); ++i) {
    const size_t first = order[i].second * size;
    candidates.insert(candidates.end(), scores.begin() + static_cast<ptrdiff_t>(first),
                      scores.begin() + static_cast<ptrdiff_t>(first + size));
  }
  std::sort(candidates.rbegin(), candidates.rend());
  const auto topk = static_cast<size_t>(moe.topk);
  return topk == candidates.size() ? INFINITY : candidates[topk - 1] - candidates[topk];
}

TEST(Router, MarginIsTheGapToTheBestExpertThatCouldHaveBeenChosen) {
  uint32_t seed = 7;
  const auto draw = [&] {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<float>((seed >> 8) % 64) / 16 - 2;  // coarse, so that ties occur
  };
  int ties = 0;
  int none_left = 0;
  for (int round = 0; round < 2000; ++round) {
    model::MoeConfig moe = sigmoid_router(12, 1 + round % 4);
    if (round % 2 == 1) moe.score = model::RouterScore::kSoftmax;
    if (round % 3 == 1) {
      moe.groups = 3;
      moe.group_topk = 1;
    } else if (round % 3 == 2) {
      moe.topk = 2 + 2 * (round % 4);
      moe.groups = 4;
      moe.group_topk = moe.topk > 2 ? 2 : 1;
      if (moe.topk > 6) moe.topk = 6;
    }
    std::vector<float> logits(12);
    std::vector<float> bias(round % 5 == 0 ? 12 : 0);
    for (float& v : logits) v = draw();
    for (float& v : bias) v = draw();
    const float margin = choose(moe, logits, bias).margin;
    ASSERT_EQ(margin, brute_force_margin(moe, logits, bias)) << "round " << round;
    ties += margin == 0;
    none_left += std::isinf(margin);
  }
  EXPECT_GT(ties, 20);
  EXPECT_GT(none_left, 20);
}

TEST(Router, MarginOfNanScoresIsNan) {
  EXPECT_TRUE(std::isnan(choose(sigmoid_router(4, 3), {NAN, NAN, NAN, 1}).margin));
}

}  // namespace
}  // namespace assay::arithmetic
