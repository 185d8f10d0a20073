#include "backends/reference/arithmetic/routing.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace assay::arithmetic {
namespace {

using ::testing::ElementsAre;

struct Choice {
  std::vector<uint16_t> experts;
  std::vector<float> weights;
};

Choice choose(const model::MoeConfig& moe, std::vector<float> logits, std::vector<float> bias = {}) {
  Choice choice{std::vector<uint16_t>(static_cast<size_t>(moe.topk)),
                std::vector<float>(static_cast<size_t>(moe.topk))};
  std::vector<float> scratch(4 * logits.size());
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

}  // namespace
}  // namespace assay::arithmetic
