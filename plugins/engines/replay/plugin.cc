#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/replay/replay.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using namespace assay::engines;  // NOLINT: one function long
  return engine_plugin<ReplayEngine>(abi_major, host,
                                     {.name = "replay",
                                      .description = "answers requests from a file of recorded results",
                                      .capabilities = kReplayCapabilities,
                                      .options_schema = kReplayOptionsSchema});
}
