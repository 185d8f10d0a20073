// The obvious version of every model: one token at a time, one thread, fp32. The oracle of the other backends.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backends/reference/border/model.h"

namespace assay::reference {

// Options: none. Fails as Checkpoint::open, map_weights and read_weight do.
Result<std::unique_ptr<backend::Model>> open_reference(const model::ModelConfig& config, std::string_view checkpoint,
                                                       std::string_view options);

}  // namespace assay::reference
