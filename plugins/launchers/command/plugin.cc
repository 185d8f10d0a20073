#include "assay/sdk.hpp"
#include "plugins/launchers/command/launcher.h"
#include "plugins/launchers/common/launcher_border.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* /*host*/) {
  using namespace assay::launchers;  // NOLINT: one function long
  return launcher_plugin<CommandLauncher>(abi_major, "command", "has workers run by a command: ssh, kubectl, srun ...",
                                          kCommandOptionsSchema);
}
