#include "assay/sdk.hpp"
#include "plugins/launchers/common/launcher_border.h"
#include "plugins/launchers/slurm/slurm.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* /*host*/) {
  using namespace assay::launchers;  // NOLINT: one function long
  return launcher_plugin<SlurmLauncher>(abi_major, "slurm", "has workers run as array jobs of a Slurm",
                                        kSlurmOptionsSchema);
}
