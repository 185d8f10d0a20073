// The C function table of a backend, made from an `open` function and a Model.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "backends/reference/border/model.h"

namespace assay::backend {

// What the backends behind this table hold with any of their options: docs/determinism.md says how, their tests that it
// is so.
inline constexpr uint64_t kOwnLevels = ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3;

// Loads a model: config, checkpoint path, options (JSON).
using OpenFunction = Result<std::unique_ptr<Model>> (*)(const model::ModelConfig& config, std::string_view checkpoint,
                                                        std::string_view options);

// Parses and validates source->config_json and opens; notes go to the host's log (null: nowhere). The handle it writes
// is what the functions below take.
int32_t open_model(OpenFunction open, const assay_host* host, const assay_model_source* source, void** model,
                   assay_error* error);

// Fills as much as info->size covers, which is at least what ABI 1.0 had, and sets size to what was filled.
int32_t model_info(void* model, assay_model_info* info, assay_error* error);
int32_t make_cache(void* model, const assay_cache_spec* spec, void** cache, assay_error* error);
// Runs at once; the ticket is already done on return, so wait() has nothing to wait for.
int32_t forward(void* model, void* cache, const assay_forward* forward, uint64_t* ticket, assay_error* error);
int32_t wait(void* model, uint64_t ticket, assay_error* error);
void release(void* cache);
void close(void* model);

}  // namespace assay::backend
