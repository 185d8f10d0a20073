#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/replay/replay.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using assay::engines::EngineBorder;
  using assay::engines::ReplayEngine;
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  EngineBorder<ReplayEngine>::set_host(host);
  static const assay_plugin descriptor = {
      ASSAY_PLUGIN_MAGIC,
      sizeof(assay_plugin),
      ASSAY_ABI_MAJOR,
      ASSAY_ABI_MINOR,
      ASSAY_ENGINE,
      0,
      assay::engines::kReplayCapabilities,
      "replay",
      "1.0.0",
      "answers requests from a file of recorded results",
      assay::engines::kReplayOptionsSchema,
      EngineBorder<ReplayEngine>::table(),
  };
  return &descriptor;
}
