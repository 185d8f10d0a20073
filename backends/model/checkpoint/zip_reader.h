// Central directory of a zip archive whose members are stored (not compressed), as torch.save writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::model {

struct ZipMember {
  std::string_view name;  // points into the archive
  uint64_t offset = 0;    // of the member's first byte, from the archive's start
  uint64_t size = 0;      // bytes
  uint32_t crc = 0;
};

// Reads the directory of `archive`, which must outlive the result. Zip64 records and data descriptors are understood;
// sizes and CRCs come from the central directory. Every member's range lies inside the archive. Member data is not
// read. Fails with kInvalid (damaged) or kUnsupported (compressed, encrypted, split); messages start with `name` and
// give the byte, counted from the start of the file that holds the archive at `base`.
Result<std::vector<ZipMember>> read_zip_directory(std::span<const std::byte> archive, const std::string& name,
                                                  uint64_t base);

}  // namespace assay::model
