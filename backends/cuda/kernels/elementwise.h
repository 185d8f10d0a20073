// Small operators between the linear layers: embedding, norm, activation, residual. Each moves its inputs and outputs
// once.
#pragma once

#include "backends/cuda/kernels/types.h"
#include "backends/model/config/model_config.h"

namespace assay::cuda {

// x[t] = word row of ids[t] (+ row of positions[t]).
struct EmbedArgs {
  Matrix words = {};               // (vocab, hidden)
  Matrix positions = {};           // (max_position_embeddings, hidden) or none
  const int32_t* ids = nullptr;    // (tokens)
  const int32_t* where = nullptr;  // (tokens) positions
  float* x = nullptr;              // (tokens, hidden)
  int tokens = 0;
};
void embed(const EmbedArgs& args, cudaStream_t stream);

// RMSNorm or LayerNorm of each token (backends/reference/operators.h).
struct NormArgs {
  const float* x = nullptr;         // (all tokens, width)
  const int32_t* gather = nullptr;  // (tokens) which of them; null: token t is row t
  const float* gamma = nullptr;     // (width)
  const float* beta = nullptr;      // (width) or null
  Inputs y = {};                    // (tokens) of (width)
  int tokens = 0;
  int width = 0;
  float epsilon = 0;
  bool centred = false;  // LayerNorm
};
void normalise(const NormArgs& args, cudaStream_t stream);

// The activation of each fc1 result times the token's factor.
struct ActivateArgs {
  model::Activation activation = model::Activation::kSwiglu;
  const float* fc1 = nullptr;     // (tokens, width), kSwiglu: (tokens, 2 * width)
  const float* factor = nullptr;  // (tokens) or null: 1
  Inputs y = {};                  // (tokens) of (width)
  int tokens = 0;
  int width = 0;
};
void activate(const ActivateArgs& args, cudaStream_t stream);

// x = x + y, elementwise.
void add(const float* y, float* x, int64_t count, cudaStream_t stream);

// x[t] = x[t] + total, where total starts from +0 and takes the experts' results of slots t * topk .. ascending, then
// the shared expert's, times sigmoid(gate[t]) where there is a gate.
struct AddExpertsArgs {
  const float* experts = nullptr;  // (tokens * topk, hidden)
  const float* shared = nullptr;   // (tokens, hidden) or null
  const float* gate = nullptr;     // (tokens) or null
  float* x = nullptr;              // (tokens, hidden)
  int tokens = 0;
  int hidden = 0;
  int topk = 0;
};
// norm: what follows of x, in the same launch where that can be (its x is args.x, no gather); null: nothing.
void add_experts(const AddExpertsArgs& args, const NormArgs* norm, cudaStream_t stream);

}  // namespace assay::cuda
