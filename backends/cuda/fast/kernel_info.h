// What the kernels of a decode step cost: the bytes that each cannot do without, as functions of the model.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cuda/fast/step.h"

namespace assay::cuda::fast {

// What the costs depend on besides the model.
struct StepPoint {
  int tokens = 1;
  int position = 0;  // of every token
  int active = 0;    // experts that any token goes to; topk for one token
};

struct KernelInfo {
  const char* name;
  bool of_layer;  // runs once a layer; else once a step
  // Weights, keys and values, logits; activations of a few KB are left out. `layer` is ignored where not of_layer.
  size_t (*bytes)(const ModelWeights& model, const LayerWeights& layer, const StepPoint& point);
};

// In the order of the step: embed_rows, then those of a layer, then head and pick. persistent_step moves the same
// bytes.
std::span<const KernelInfo> kernel_table();
const KernelInfo& find_kernel(const char* name);  // one of the table's

// Of a whole step.
size_t step_bytes(const ModelWeights& model, const StepPoint& point);

}  // namespace assay::cuda::fast
