// Which models the fast path takes.
#pragma once

#include <string>

#include "backends/model/config/model_config.h"

namespace assay::cuda::fast {

// Empty, or the first reason why decode_step cannot run the model: "hidden size 4096, the fast decode step has 2048".
std::string unsupported(const model::ModelConfig& config);

inline bool supports(const model::ModelConfig& config) { return unsupported(config).empty(); }

}  // namespace assay::cuda::fast
