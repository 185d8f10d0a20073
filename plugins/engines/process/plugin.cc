#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/process/process.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using namespace assay::engines;  // NOLINT: one function long
  return engine_plugin<ProcessEngine>(abi_major, host,
                                      {.name = "process",
                                       .description = "runs a command that answers requests or trains",
                                       .capabilities = kProcessCapabilities,
                                       .options_schema = kProcessOptionsSchema});
}
