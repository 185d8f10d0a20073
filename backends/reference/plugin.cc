#include "assay/sdk.hpp"
#include "backends/reference/border/table.h"
#include "backends/reference/reference_model.h"

namespace {

const assay_host* host_of_plugin = nullptr;  // set once, by the first query

int32_t describe(assay_backend_info* info, assay_error*) {
  info->usable = 1;
  info->device = assay::sdk::view("reference, one thread");
  return ASSAY_OK;
}

int32_t open(const assay_model_source* source, void** model, assay_error* error) {
  return assay::backend::open_model(assay::reference::open_reference, host_of_plugin, source, model, error);
}

constexpr assay_backend_table kTable = {sizeof(assay_backend_table),
                                        0,
                                        describe,
                                        open,
                                        assay::backend::model_info,
                                        assay::backend::make_cache,
                                        assay::backend::forward,
                                        assay::backend::wait,
                                        assay::backend::release,
                                        assay::backend::close};

constexpr assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                                  sizeof(assay_plugin),
                                  ASSAY_ABI_MAJOR,
                                  ASSAY_ABI_MINOR,
                                  ASSAY_BACKEND,
                                  0,
                                  ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS |
                                      ASSAY_CAP_FORCED_TOKENS | ASSAY_CAP_ROUTING | ASSAY_CAP_BATCH | ASSAY_CAP_SEED |
                                      assay::backend::kOwnLevels,
                                  "reference",
                                  "0.1.0",
                                  "The obvious arithmetic: one token at a time, fp32 accumulation, one thread",
                                  R"({"type":"object","properties":{},"additionalProperties":false})",
                                  &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host* host) {
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  host_of_plugin = host;
  return &kPlugin;
}
