// A plugin whose library needs a symbol that nobody defines.
#include "assay/sdk.hpp"

int a_symbol_that_nobody_defines();

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t, uint32_t, const assay_host*) {
  static assay_plugin plugin{};
  plugin.reserved = static_cast<uint32_t>(a_symbol_that_nobody_defines());
  return &plugin;
}
