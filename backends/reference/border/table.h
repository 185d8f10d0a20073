// The C function table of a backend, made from an `open` function and a Model.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "backends/reference/border/model.h"

namespace assay::backend {

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
// Of a model that is Measurable (measurable.h); kUnsupported for others.
int32_t device_facts(void* model, assay_device_facts* facts, assay_error* error);
int32_t profile(void* model, void* cache, const assay_forward* forward, const assay_kernel_time** kernels,
                size_t* count, assay_error* error);

// The table of a backend: its own two functions, and those above.
constexpr assay_backend_table table_of(decltype(assay_backend_table::describe) describe,
                                       decltype(assay_backend_table::open) open) {
  return {sizeof(assay_backend_table),
          0,
          describe,
          open,
          model_info,
          make_cache,
          forward,
          wait,
          release,
          close,
          device_facts,
          profile};
}

// What tells one backend's descriptor from another's. All strings and the table live as long as the plugin.
struct Description {
  const char* name = nullptr;
  const char* description = nullptr;     // one line
  const char* options_schema = nullptr;  // JSON schema
};

constexpr assay_plugin plugin_of(const Description& own, const assay_backend_table& table) {
  return {ASSAY_PLUGIN_MAGIC,
          sizeof(assay_plugin),
          ASSAY_ABI_MAJOR,
          ASSAY_ABI_MINOR,
          ASSAY_BACKEND,
          0,
          ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS | ASSAY_CAP_FORCED_TOKENS |
              ASSAY_CAP_ROUTING | ASSAY_CAP_BATCH | ASSAY_CAP_SEED | kOwnLevels,
          own.name,
          "0.1.0",
          own.description,
          own.options_schema,
          &table};
}

}  // namespace assay::backend
