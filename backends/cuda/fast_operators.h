// Option prefill=fast within the model: what the vendor's libraries are given, and the operators that take them.
#pragma once

#include "backends/cuda/cuda_weights.h"
#include "backends/cuda/operators.h"
#include "backends/cuda/vendor/fast_prefill.h"
#include "backends/model/config/model_config.h"

namespace assay::cuda {

// The dense layers: query-key-value, projection, MLPs, shared experts and the output layer. `slice`: most tokens of one
// pass through the layers.
vendor::PrefillModel prefill_model(const model::ModelConfig& config, const Weights& weights, size_t slice);

// Linear layers by `fast`, which must outlive them, where it can, else by the own kernels.
Operators fast_operators(const vendor::FastPrefill& fast);

}  // namespace assay::cuda
