// Which experts each token goes to (backends/reference/arithmetic/routing.h), and the tokens by expert.
#pragma once

#include "backends/cuda/kernels/types.h"
#include "backends/model/config/model_config.h"

namespace assay::cuda {

// As choose_experts() for every token: one warp a token.
struct ChooseArgs {
  const model::MoeConfig* moe = nullptr;  // host memory
  const float* logits = nullptr;          // (tokens, experts), rounded already where they are to be
  const float* bias = nullptr;            // (experts) or null
  int tokens = 0;
  uint16_t* experts = nullptr;  // (tokens, topk) ascending
  float* factors = nullptr;     // (tokens, topk)
  float* margins = nullptr;     // (tokens)
};
void choose_experts(const ChooseArgs& args, cudaStream_t stream);

// Tiles that `slots` slots over `experts` experts may need.
constexpr int most_tiles(int slots, int experts) { return slots / kTileTokens + (slots < experts ? slots : experts); }

// Int32s that group_slots writes: order (slots), three a tile, the number of tiles, where the experts begin.
constexpr int group_ints(int slots, int experts) { return slots + 3 * most_tiles(slots, experts) + 1 + experts + 1; }

// Sorts the slots by expert, in `storage` of group_ints(), and returns where everything is.
struct GroupArgs {
  const uint16_t* chosen = nullptr;  // (slots)
  int slots = 0;
  int experts = 0;
  int32_t* storage = nullptr;
};
Groups group_slots(const GroupArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
