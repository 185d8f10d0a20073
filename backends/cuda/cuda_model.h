// The CUDA backend: all models on one GPU.
#pragma once

#include <memory>
#include <string_view>

#include "assay/status.h"
#include "backends/reference/border/model.h"

namespace assay::cuda {

// `options`: parse_model_options() (model_options.h); with random weights no checkpoint is looked at. kInfra when no
// device can be used (find_device), kUnsupported where prefill=fast finds no cuBLASLt, kExhausted when weights or
// workspace do not fit.
Result<std::unique_ptr<backend::Model>> open_cuda(const model::ModelConfig& config, std::string_view checkpoint,
                                                  std::string_view options);

}  // namespace assay::cuda
