// What every comparator plugin has beside its judgement: the frame of its judge function, and its descriptor.
#pragma once

#include <cstdint>
#include <utility>

#include "assay/plugin_abi.h"
#include "assay/sdk.hpp"
#include "assay/status.h"
#include "core/compare/emit.h"

namespace assay::compare {

// For assay_comparator_table::judge: `body` gets the parsed options and returns a Status. Nothing is thrown; what goes
// wrong is told in `error`.
template <class Body>
int32_t judge_with_options(const assay_judgement& judgement, assay_error* error, Body&& body) {
  return sdk::guarded(error, [&]() -> Status {
    const Result<ComparatorOptions> options = parse_options(judgement.options);
    if (!options) return options.status();
    return std::forward<Body>(body)(*options);
  });
}

// The descriptor of a comparator of this tree. All arguments live as long as the program.
constexpr assay_plugin comparator_plugin(const char* name, const char* description, uint64_t capabilities,
                                         const assay_comparator_table* table) {
  return {.magic = ASSAY_PLUGIN_MAGIC,
          .size = sizeof(assay_plugin),
          .abi_major = ASSAY_ABI_MAJOR,
          .abi_minor = ASSAY_ABI_MINOR,
          .kind = ASSAY_COMPARATOR,
          .reserved = 0,
          .capabilities = capabilities,
          .name = name,
          .version = "1.0.0",
          .description = description,
          .options_schema = kOptionsSchema,
          .table = table};
}

}  // namespace assay::compare
