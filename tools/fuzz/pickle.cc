// Pickles of checkpoints: metadata and arguments.
#include <span>

#include "backends/model/checkpoint/args_import.h"
#include "backends/model/checkpoint/dcp_metadata.h"
#include "backends/model/checkpoint/pickle_reader.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::model;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto pickle = Pickle::read(bytes, "f", 0, {.max_bytes = 1u << 20, .max_nodes = 1u << 16, .max_depth = 256});
  if (!pickle) {
    assay::fuzz::require_message(pickle.status().message());
    return 0;
  }
  const auto metadata = interpret_metadata(*pickle, "f");
  if (!metadata) assay::fuzz::require_message(metadata.status().message());
  const auto args = import_args(*pickle, "f");
  if (!args) assay::fuzz::require_message(args.status().message());
  return 0;
}
