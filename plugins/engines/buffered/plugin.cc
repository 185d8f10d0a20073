#include "assay/sdk.hpp"
#include "plugins/engines/buffered/engine.h"
#include "plugins/engines/common/engine_border.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using assay::engines::BufferedEngine;
  using assay::engines::EngineBorder;
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  EngineBorder<BufferedEngine>::set_host(host);
  static const assay_plugin descriptor = {
      ASSAY_PLUGIN_MAGIC,
      sizeof(assay_plugin),
      ASSAY_ABI_MAJOR,
      ASSAY_ABI_MINOR,
      ASSAY_ENGINE,
      0,
      assay::engines::kBufferedCapabilities,
      "buffered",
      "1.0.0",
      "continuous batching over a paged KV cache, as Megatron-LM's dynamic engine",
      assay::engines::kBufferedOptionsSchema,
      EngineBorder<BufferedEngine>::table(),
  };
  return &descriptor;
}
