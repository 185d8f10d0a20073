#include "assay/sdk.hpp"
#include "plugins/engines/buffered/engine.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/faulty/faulty.h"
#include "plugins/engines/faulty/options.h"
#include "plugins/engines/static_legacy/engine.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using namespace assay::engines;  // NOLINT: one function long
  // Its levels are a lie: with a fault of Family::kCondition none of them holds, and relations have to find out.
  constexpr uint64_t kLevels = ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3;
  return engine_plugin<FaultyEngine>(
      abi_major, host,
      {.name = "faulty",
       .description = "static_legacy or buffered with one planted fault, for the self-test",
       .capabilities = kStaticCapabilities | kBufferedCapabilities | kLevels,
       .options_schema = faulty_options_schema().c_str()});
}
