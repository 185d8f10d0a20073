// The router on the device against backends/reference/arithmetic/routing.h, bit for bit, and the tokens by expert.
#include "backends/cuda/kernels/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/arithmetic/routing.h"

namespace assay::cuda {
namespace {

using Floats = std::vector<float>;

class RoutingKernel : public OnDevice {};

std::vector<model::MoeConfig> routers() {
  std::vector<model::MoeConfig> all;
  for (const auto score : {model::RouterScore::kSoftmax, model::RouterScore::kSigmoid}) {
    model::MoeConfig moe;
    moe.score = score;
    moe.experts = 64;
    moe.topk = 6;
    all.push_back(moe);
    moe.pre_softmax = score == model::RouterScore::kSoftmax;
    moe.expert_bias = true;
    moe.scaling_factor = 2.5;
    all.push_back(moe);
    moe.groups = 8;
    moe.group_topk = 3;
    all.push_back(moe);
    moe.groups = 0;
    moe.experts = 7;
    moe.topk = 1;
    all.push_back(moe);
    moe.topk = 7;
    all.push_back(moe);
  }
  return all;
}

// Logits with many ties, some infinities, and in the last rows NaN.
Floats router_logits(size_t tokens, size_t experts) {
  Floats logits = some_floats(tokens * experts, 1);
  for (float& v : logits) v = arithmetic::round_bf16(std::round(v * 16) / 4);
  logits[experts + 1] = -INFINITY;
  for (size_t e = 0; e < experts; ++e) logits[(tokens - 1) * experts + e] = NAN;
  logits[(tokens - 2) * experts + 2] = NAN;
  return logits;
}

TEST_F(RoutingKernel, ChoosesWeightsAndMarginsOfTheReference) {
  const size_t tokens = 40;
  for (const model::MoeConfig& moe : routers()) {
    const auto experts = static_cast<size_t>(moe.experts);
    const auto topk = static_cast<size_t>(moe.topk);
    Floats logits = router_logits(tokens, experts);
    if (moe.groups > 0) {
      for (float& v : logits) v = v == v ? v : 0.0f;  // the order of NaN within a group is nobody's
    }
    const Floats bias = moe.expert_bias ? some_floats(experts, 2) : Floats{};
    std::vector<uint16_t> chosen(tokens * topk);
    Floats weights(tokens * topk);
    Floats margins;
    Floats scratch(4 * experts);
    for (size_t t = 0; t < tokens; ++t) {
      margins.push_back(arithmetic::choose_experts(moe, &logits[t * experts], bias, scratch.data(), &chosen[t * topk],
                                                   &weights[t * topk]));
    }
    const auto device_logits = upload(logits);
    const auto device_bias = upload(bias);
    const auto device_chosen = upload(std::vector<uint16_t>(tokens * topk, 0xffffu));
    const auto factors = upload(Floats(tokens * topk, -1.0f));
    const auto device_margins = upload(Floats(tokens, -1.0f));
    ChooseArgs args{.moe = &moe, .logits = device_logits.data(), .bias = bias.empty() ? nullptr : device_bias.data()};
    args.tokens = static_cast<int>(tokens);
    args.experts = device_chosen.data();
    args.factors = factors.data();
    args.margins = device_margins.data();
    choose_experts(args, nullptr);
    const std::string what = "experts " + std::to_string(moe.experts) + ", topk " + std::to_string(moe.topk) +
                             ", groups " + std::to_string(moe.groups) + ", score " +
                             std::to_string(static_cast<int>(moe.score));
    EXPECT_TRUE(same_bits(download(device_chosen), chosen)) << what;
    EXPECT_TRUE(same_numbers(download(factors), weights)) << what;
    EXPECT_TRUE(same_numbers(download(device_margins), margins)) << what;
  }
}

// `count` slots over `experts` experts, the last of which has none.
void expect_grouped(size_t count, int experts) {
  std::vector<uint16_t> chosen;
  for (const float v : some_floats(count, 3)) {
    chosen.push_back(static_cast<uint16_t>(std::abs(v) * static_cast<float>(experts - 1)));
  }
  const int slots = static_cast<int>(chosen.size());
  const auto device = upload(chosen);
  const auto storage = upload(std::vector<int32_t>(static_cast<size_t>(group_ints(slots, experts)), -1));
  const Groups groups =
      group_slots({.chosen = device.data(), .slots = slots, .experts = experts, .storage = storage.data()}, nullptr);
  const std::vector<int32_t> all = download(storage);
  const auto at = [&](const int32_t* place) { return static_cast<size_t>(place - storage.data()); };
  const int tiles = all[at(groups.tiles)];
  ASSERT_LE(tiles, groups.most_tiles);
  std::vector<int32_t> seen;
  for (int i = 0; i < tiles; ++i) {
    const int tokens = all[at(groups.tile_count) + static_cast<size_t>(i)];
    EXPECT_GE(tokens, 1);
    EXPECT_LE(tokens, kTileTokens);
    for (int j = 0; j < tokens; ++j) {
      const int begin = all[at(groups.tile_begin) + static_cast<size_t>(i)];
      seen.push_back(all[at(groups.order) + static_cast<size_t>(begin + j)]);
      EXPECT_EQ(chosen[static_cast<size_t>(seen.back())], all[at(groups.tile_expert) + static_cast<size_t>(i)]);
    }
  }
  std::vector<int32_t> expected(chosen.size());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int32_t>(i);
  std::stable_sort(expected.begin(), expected.end(), [&](int32_t a, int32_t b) {
    return chosen[static_cast<size_t>(a)] < chosen[static_cast<size_t>(b)];
  });
  EXPECT_EQ(seen, expected) << count << " slots, " << experts << " experts";
  for (size_t e = 0; e <= static_cast<size_t>(experts); ++e) {
    const auto before = std::count_if(chosen.begin(), chosen.end(), [e](uint16_t c) { return c < e; });
    EXPECT_EQ(all[at(groups.begin) + e], before) << "expert " << e;
  }
}

TEST_F(RoutingKernel, SlotsAreGroupedByExpertInTilesOfEight) {
  for (const size_t slots : {1u, 31u, 33u, 100u, 1024u, 1025u, 9000u}) {
    for (const int experts : {2, 9, 32, 64, 300, 2000}) expect_grouped(slots, experts);
  }
}

}  // namespace
}  // namespace assay::cuda
