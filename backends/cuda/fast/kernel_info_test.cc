#include "backends/cuda/fast/kernel_info.h"

#include <gtest/gtest.h>

namespace assay::cuda::fast {
namespace {

// The 16B mixture: 27 layers, the first without experts.
ModelWeights sixteen_billion() {
  ModelWeights model;
  model.groups = 16;
  model.heads_per_group = 1;
  model.vocabulary = 131072;
  model.layers.resize(27);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    ExpertWeights& w = model.layers[i].experts;
    w.shared_width = i == 0 ? 10944 : 2816;
    if (i == 0) continue;
    w.experts = 64;
    w.topk = 6;
    w.width = 1408;
  }
  return model;
}

TEST(FastKernelInfo, AStepReadsTheWeightsOfSixExpertsAndOfAllElse) {
  // 2 bytes a weight: 27 of 4 hidden^2, 26 of a router and 8 widths of 3 hidden, one MLP, the output layer.
  constexpr size_t kWeights =
      27 * 4 * 2048 * 2048ull + 26 * (64 * 2048 + 8 * 1408 * 3 * 2048ull) + 3 * 10944 * 2048ull + 131072 * 2048ull;
  constexpr size_t kSmall = 2048 * 2 + 131072 * 4;            // an embedding, the logits
  constexpr size_t kCached = 27 * 16 * 128 * 2 * 2 * 129ull;  // keys and values of 129 positions
  EXPECT_EQ(step_bytes(sixteen_billion(), {.position = 128, .active = 6}), 2 * kWeights + kSmall + kCached);
}

TEST(FastKernelInfo, MoreTokensReadMoreExpertsAndKeys) {
  const ModelWeights model = sixteen_billion();
  const StepPoint one = {.position = 1000, .active = 6};
  const StepPoint eight = {.tokens = 8, .position = 1000, .active = 35};
  for (const KernelInfo& kernel : kernel_table()) {
    EXPECT_EQ(&find_kernel(kernel.name), &kernel);
    const LayerWeights& layer = model.layers[1];
    EXPECT_GE(kernel.bytes(model, layer, eight), kernel.bytes(model, layer, one)) << kernel.name;
  }
  const KernelInfo& up = find_kernel("experts_up");
  EXPECT_EQ(up.bytes(model, model.layers[1], eight) - up.bytes(model, model.layers[1], one),
            29 * 2 * 1408 * 2048 * 2ull);
}

}  // namespace
}  // namespace assay::cuda::fast
