#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/static_legacy/engine.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using assay::engines::EngineBorder;
  using assay::engines::StaticEngine;
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  EngineBorder<StaticEngine>::set_host(host);
  static const assay_plugin descriptor = {
      ASSAY_PLUGIN_MAGIC,
      sizeof(assay_plugin),
      ASSAY_ABI_MAJOR,
      ASSAY_ABI_MINOR,
      ASSAY_ENGINE,
      0,
      assay::engines::kStaticCapabilities,
      "static_legacy",
      "1.0.0",
      "batches of consecutive requests, each run to its end, as Megatron-LM's legacy static engine",
      assay::engines::kStaticOptionsSchema,
      EngineBorder<StaticEngine>::table(),
  };
  return &descriptor;
}
