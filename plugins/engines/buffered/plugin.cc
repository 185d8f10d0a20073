#include "assay/sdk.hpp"
#include "plugins/engines/buffered/engine.h"
#include "plugins/engines/common/engine_border.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using namespace assay::engines;  // NOLINT: one function long
  return engine_plugin<BufferedEngine>(
      abi_major, host,
      {.name = "buffered",
       .description = "continuous batching over a paged KV cache, as Megatron-LM's dynamic engine",
       .capabilities = kBufferedCapabilities,
       .options_schema = kBufferedOptionsSchema});
}
