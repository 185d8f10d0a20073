// One source for every plugin of the tests, deliberately broken ones foremost; what is wrong is chosen by the constants
// that CMake writes into broken_config.h for each target.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iterator>

#include "assay/sdk.hpp"
#include "broken_config.h"

namespace {

int32_t judge(const assay_judgement*, const assay_sink*, assay_error*) { return ASSAY_OK; }

const bool kOwnNameAlone = std::size(kMetrics) == 1 && kMetrics[0] == nullptr;
const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, kNullEntry ? nullptr : judge,
                                       kOwnNameAlone ? nullptr : kMetrics, kOwnNameAlone ? 0 : std::size(kMetrics)};

const assay_plugin kPlugin = {.magic = kMagic,
                              .size = kSize == 0 ? sizeof(assay_plugin) : kSize,
                              .abi_major = kMajor,
                              .abi_minor = kMinor,
                              .kind = kKind,
                              .reserved = 0,
                              .capabilities = ASSAY_CAP_TEXT | 1ull << 40,
                              .name = kName,
                              .version = "3.2.1",
                              .description = "made to be refused",
                              .options_schema = "{}",
                              .table = kNullTable ? nullptr : &kTable};

struct Constructor {
  Constructor() {
    if (kSignal != 0) std::raise(kSignal);
    if (kExit != 0) std::_Exit(kExit);
    while (kHang) ::pause();
  }
};
const Constructor kConstructor;

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t, uint32_t, const assay_host*) {
  return kNullDescriptor ? nullptr : &kPlugin;
}
