// Archives of checkpoints: the zip directory, a tensor, an object.
#include <span>

#include "backends/model/checkpoint/blob_reader.h"
#include "backends/model/checkpoint/zip_reader.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::model;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto members = read_zip_directory(bytes, "f", 0);
  if (!members) {
    assay::fuzz::require_message(members.status().message());
  } else {
    for (const ZipMember& member : *members) {
      assay::fuzz::require(member.offset <= size && member.size <= size - member.offset, "members lie in the archive");
    }
  }
  const auto tensor = read_tensor_blob(bytes, "f", 0);
  if (!tensor) assay::fuzz::require_message(tensor.status().message());
  const auto object = read_object_blob(bytes, "f", 0);
  if (!object) assay::fuzz::require_message(object.status().message());
  return 0;
}
