// Which experts each token goes to (backends/reference/arithmetic/routing.h), and the tokens by expert.
#pragma once

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/linear.h"
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

// The norm before a mixture, the router's linear layer and the choice in one launch: the bits of normalise(), linear()
// and choose_experts(). Where route_takes() is false: one after the other.
struct RouteArgs {
  NormArgs norm = {};      // y is logits.x; x null: logits.x is there already
  LinearArgs logits = {};  // y is not written
  ChooseArgs choose = {};  // logits are not read
};
bool route_takes(const RouteArgs& args);
void route(const RouteArgs& args, cudaStream_t stream);

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
