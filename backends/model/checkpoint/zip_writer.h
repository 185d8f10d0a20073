// A zip archive of stored members in torch.save's layout: padded members, data descriptors, a zip64 directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/model/checkpoint/file_sink.h"

namespace assay::model {

// Writes one archive at the sink's present offset, which is the archive's byte 0. Failures surface in the sink's
// close(). The sink must outlive the writer. Not thread-safe.
class ZipWriter {
 public:
  explicit ZipWriter(FileSink& sink) : sink_(sink), base_(sink.offset()) {}

  void begin(std::string_view name);  // one member at a time
  void append(std::span<const std::byte> data);
  void end();
  void add(std::string_view name, std::string_view data);  // begin, append, end
  void finish();                                           // directory and end records

  // Offset of a member's data when a member of that name begins at archive offset `at`: a multiple of kAlignment.
  static uint64_t data_offset(uint64_t at, std::string_view name);
  // Bytes of a whole member without its directory entry, from its local header at `at`.
  static uint64_t member_end(uint64_t at, std::string_view name, uint64_t size);

  static constexpr uint64_t kAlignment = 64;  // bytes

 private:
  struct Entry {
    std::string name;
    uint64_t header = 0;  // archive offset
    uint64_t size = 0;
    uint32_t crc = 0;
  };

  FileSink& sink_;
  uint64_t base_;
  std::vector<Entry> entries_;
};

}  // namespace assay::model
