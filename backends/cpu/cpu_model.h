// The fast backend: equal to the reference bit for bit, at any instruction set, thread count, batch and chunking.
#pragma once

#include <memory>
#include <string_view>

#include "backends/reference/border/model.h"

namespace assay::cpu {

// Options: isa = auto | avx512 | avx2 | scalar; threads = 0 (the cores this process may use) | 1 .. 1024;
// parallel_from = 524288: operators of fewer multiply-adds stay on one thread. None of them changes a result.
// Fails as Checkpoint::open and map_weights do; kUnsupported when the processor lacks `isa`; kExhausted when the
// weights do not fit into memory.
Result<std::unique_ptr<backend::Model>> open_cpu(const model::ModelConfig& config, std::string_view checkpoint,
                                                 std::string_view options);

}  // namespace assay::cpu
