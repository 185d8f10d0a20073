#include "core/train/wire.h"

namespace assay::train {

bool WireReader::varint(uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  broken_ = true;
  return false;
}

bool WireReader::fixed(size_t bytes, uint64_t* value) {
  if (rest_.size() < bytes) {
    broken_ = true;
    return false;
  }
  *value = 0;
  for (size_t i = bytes; i-- > 0;) *value = (*value << 8) | static_cast<uint8_t>(rest_[i]);
  rest_.remove_prefix(bytes);
  return true;
}

bool WireReader::next(WireField* field) {
  uint64_t tag = 0;
  if (broken_ || rest_.empty() || !varint(&tag)) return false;
  *field = {};
  field->number = static_cast<uint32_t>(tag >> 3);
  field->type = static_cast<WireType>(tag & 7);
  switch (field->type) {
    case WireType::kVarint:
      return varint(&field->value);
    case WireType::kFixed64:
      return fixed(8, &field->value);
    case WireType::kFixed32:
      return fixed(4, &field->value);
    case WireType::kBytes: {
      uint64_t length = 0;
      if (!varint(&length)) return false;
      if (length > rest_.size()) break;
      field->bytes = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return true;
    }
  }
  broken_ = true;
  return false;
}

}  // namespace assay::train
