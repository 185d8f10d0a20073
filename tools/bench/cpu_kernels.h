// Kernels of backend `cpu` at the shapes of a model, from what they declare (backends/cpu/kernels/kernel_info.h).
#pragma once

#include <cstdint>
#include <vector>

#include "backends/model/config/model_config.h"
#include "tools/bench/sequence.h"

namespace assay::bench {

// Linear layers and attention of one pass over `tokens` tokens behind `past` others, each kernel by itself on one
// thread with the instructions that the backend would choose, the fastest of some calls. `number`: bytes of a stored
// weight. Of a matrix above 64 MB as many rows as fit. Empty where no instruction set can be chosen.
std::vector<KernelRow> measure_cpu_kernels(const model::ModelConfig& config, double number, uint32_t tokens,
                                           uint32_t past);

}  // namespace assay::bench
