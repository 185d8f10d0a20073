#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/static_legacy/engine.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using namespace assay::engines;  // NOLINT: one function long
  return engine_plugin<StaticEngine>(
      abi_major, host,
      {.name = "static_legacy",
       .description = "batches of consecutive requests, each run to its end, as Megatron-LM's legacy static engine",
       .capabilities = kStaticCapabilities,
       .options_schema = kStaticOptionsSchema});
}
