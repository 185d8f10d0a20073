// The MLP or the mixture of experts of one layer, over the tokens of a slice.
#pragma once

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/operators.h"
#include "backends/cuda/workspace.h"

namespace assay::cuda {

struct FeedForwardStep {
  const Layer& layer;
  size_t moe_layer = 0;               // which of the mixtures this is; w.experts and w.margins get its choices
  const NormWeights* next = nullptr;  // the norm that reads w.x after this layer
};

// Norms w.x (layer.mlp_norm, to w.normed) and adds to it; then w.normed is what `next` gives, where there is one.
void feed_forward(const model::ModelConfig& config, const FeedForwardStep& step, const Operators& operators,
                  Workspace& w, cudaStream_t stream);

// The norm of all tokens' w.x, to w.normed.
NormArgs norm_of(const model::ModelConfig& config, const NormWeights& weights, const Workspace& w);

}  // namespace assay::cuda
