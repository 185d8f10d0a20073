// One torch.save archive: a pickle and the storages it refers to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/checkpoint/pickle_reader.h"

namespace assay::model {

// A tensor inside an archive; nothing is copied. Every element lies inside the storage.
struct TensorBlob {
  std::string dtype_name;  // torch's spelling without "torch."
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;        // elements, none negative; torch keeps those of a dense transposed tensor
  std::span<const std::byte> storage;  // the whole storage, of which `crc` is the CRC-32
  uint64_t data_offset = 0;            // of the tensor's first element, in bytes from the storage's start
  uint32_t crc = 0;
};

// Reads the archive `blob` (which must outlive the result) that holds exactly one tensor. `name` and `base` (the file
// offset of blob[0]) go into messages. The CRC of data.pkl is checked, that of the storage is left to the caller.
// kInvalid: damaged. kUnsupported: compressed, big endian, a kind of tensor that is not read.
Result<TensorBlob> read_tensor_blob(std::span<const std::byte> blob, const std::string& name, uint64_t base);

// Reads the pickle of an archive that holds any object (common.pt, common_state); tensors in it stay opaque.
// The result points into `blob`.
Result<Pickle> read_object_blob(std::span<const std::byte> blob, const std::string& name, uint64_t base);

}  // namespace assay::model
