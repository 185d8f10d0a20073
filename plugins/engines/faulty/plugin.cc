#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/faulty/faulty.h"
#include "plugins/engines/faulty/options.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using namespace assay::engines;  // NOLINT: one function long
  return engine_plugin<FaultyEngine>(abi_major, host,
                                     {.name = "faulty",
                                      .description = "static_legacy with one planted fault, for the self-test",
                                      .capabilities = kStaticCapabilities,
                                      .options_schema = faulty_options_schema().c_str()});
}
