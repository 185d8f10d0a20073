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

constexpr assay_backend_table kTable = assay::backend::table_of(describe, open);

constexpr assay_plugin kPlugin = assay::backend::plugin_of(
    {.name = "reference",
     .description = "The obvious arithmetic: one token at a time, fp32 accumulation, one thread",
     .options_schema = R"({"type":"object","properties":{},"additionalProperties":false})"},
    kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host* host) {
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  host_of_plugin = host;
  return &kPlugin;
}
