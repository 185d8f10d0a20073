// The CUDA backend: all models on one GPU.
#pragma once

#include <memory>
#include <string_view>

#include "assay/status.h"
#include "backends/reference/border/model.h"

namespace assay::cuda {

// Options: "load_threads" (integer, 0: one a core, at most 16). kInfra when no device can be used (find_device),
// kExhausted when the weights do not fit.
Result<std::unique_ptr<backend::Model>> open_cuda(const model::ModelConfig& config, std::string_view checkpoint,
                                                  std::string_view options);

}  // namespace assay::cuda
