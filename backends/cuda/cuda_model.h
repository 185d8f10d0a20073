// The CUDA backend: all models on one GPU.
#pragma once

#include <memory>
#include <string_view>

#include "assay/status.h"
#include "backends/reference/border/model.h"

namespace assay::cuda {

// Options, all integers, none of which changes a bit of a result: "threads" (of the host, that load the weights; 0: one
// a core, at most 16), "slice" (tokens of one pass through the layers, 1 .. 4096, 1024 by default). kInfra when no
// device can be used (find_device), kExhausted when the weights do not fit.
Result<std::unique_ptr<backend::Model>> open_cuda(const model::ModelConfig& config, std::string_view checkpoint,
                                                  std::string_view options);

}  // namespace assay::cuda
