#include "assay/sdk.hpp"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/faulty/faulty.h"
#include "plugins/engines/faulty/options.h"

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t /*abi_minor*/,
                                                           const assay_host* host) {
  using assay::engines::EngineBorder;
  using assay::engines::FaultyEngine;
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  EngineBorder<FaultyEngine>::set_host(host);
  static const assay_plugin descriptor = {
      ASSAY_PLUGIN_MAGIC,
      sizeof(assay_plugin),
      ASSAY_ABI_MAJOR,
      ASSAY_ABI_MINOR,
      ASSAY_ENGINE,
      0,
      assay::engines::kStaticCapabilities,
      "faulty",
      "1.0.0",
      "static_legacy with one planted fault, for the self-test",
      assay::engines::faulty_options_schema().c_str(),
      EngineBorder<FaultyEngine>::table(),
  };
  return &descriptor;
}
