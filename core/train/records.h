// The records of a TFRecord file: length, masked CRC of the length, data, masked CRC of the data; little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "assay/status.h"

namespace assay::train {

// Goes through the bytes of one file, which outlive it.
class RecordReader {
 public:
  enum class State : uint8_t {
    kRecord,   // `data` is the next record
    kEnd,      // behind the last record
    kTorn,     // the file ends inside a record: its writer is still at work, or died
    kCorrupt,  // a checksum is wrong
  };

  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}

  // After anything but kRecord, the same again.
  State next();

  std::string_view data() const { return data_; }
  uint64_t offset() const { return offset_; }  // of the record, in bytes
  // kTorn and kCorrupt: what is wrong, without the file's name.
  const std::string& problem() const { return problem_; }

 private:
  State stop(State state, std::string problem);

  std::string_view bytes_;
  std::string_view data_;
  uint64_t offset_ = 0;
  uint64_t next_ = 0;
  std::string problem_;
};

}  // namespace assay::train
