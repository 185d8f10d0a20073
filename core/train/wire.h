// Fields of a protocol buffer message, one after the other: as much as event files need.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace assay::train {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // kVarint; the bits of kFixed64 and kFixed32
  std::string_view bytes;  // kBytes

  float as_float() const { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
};

// Reads from `bytes`, which outlives it.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  // False at the end, and where the bytes are no message.
  bool next(WireField* field);
  // Meaningful once next() was false.
  bool broken() const { return broken_; }

  // For packed repeated fields.
  bool varint(uint64_t* value);
  bool fixed(size_t bytes, uint64_t* value);

 private:
  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace assay::train
