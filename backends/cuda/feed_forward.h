// The MLP or the mixture of experts of one layer, over the tokens of a slice.
#pragma once

#include "backends/cuda/operators.h"
#include "backends/cuda/workspace.h"

namespace assay::cuda {

// Reads w.normed, adds to w.x. moe_layer: which of the mixtures this is; w.experts and w.margins get its choices.
void feed_forward(const model::ModelConfig& config, const Layer& layer, size_t moe_layer, const Operators& operators,
                  Workspace& w, cudaStream_t stream);

}  // namespace assay::cuda
