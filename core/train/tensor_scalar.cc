#include "core/train/tensor_scalar.h"

#include <bit>
#include <cstdint>

#include "backends/model/checkpoint/convert.h"
#include "core/train/wire.h"

namespace assay::train {
namespace {

// Numbers of TensorFlow's DataType.
enum DataType : uint64_t {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

size_t width_of(uint64_t type) {
  switch (type) {
    case kDouble:
    case kInt64:
    case kUint64:
      return 8;
    case kFloat:
    case kInt32:
    case kUint32:
      return 4;
    case kInt16:
    case kUint16:
    case kBfloat16:
    case kHalf:
      return 2;
    case kInt8:
    case kUint8:
    case kBool:
      return 1;
    default:
      return 0;
  }
}

// The value of raw bits, little-endian in `bits`.
double value_of(uint64_t type, uint64_t bits) {
  switch (type) {
    case kFloat:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case kDouble:
      return std::bit_cast<double>(bits);
    case kBfloat16:
      return model::bf16_to_float(static_cast<uint16_t>(bits));
    case kHalf:
      return model::fp16_to_float(static_cast<uint16_t>(bits));
    case kInt8:
      return static_cast<int8_t>(bits);
    case kInt16:
      return static_cast<int16_t>(bits);
    case kInt32:
      return static_cast<int32_t>(bits);
    case kInt64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case kBool:
      return bits != 0 ? 1 : 0;
    default:
      return static_cast<double>(bits);
  }
}

// Field of a TensorProto that holds values of this type; 0: none.
uint32_t value_field(uint64_t type) {
  switch (type) {
    case kFloat:
      return 5;
    case kDouble:
      return 6;
    case kInt8:
    case kInt16:
    case kInt32:
    case kUint8:
    case kUint16:
      return 7;
    case kInt64:
      return 10;
    case kBool:
      return 11;
    case kHalf:
    case kBfloat16:
      return 13;
    case kUint32:
      return 16;
    case kUint64:
      return 17;
    default:
      return 0;
  }
}

bool is_one_element(std::string_view shape) {
  WireReader reader(shape);
  WireField field;
  while (reader.next(&field)) {
    if (field.number != 2 || field.type != WireType::kBytes) continue;
    uint64_t size = 0;
    WireReader dimension(field.bytes);
    WireField member;
    while (dimension.next(&member)) {
      if (member.number == 1 && member.type == WireType::kVarint) size = member.value;
    }
    if (size != 1) return false;
  }
  return !reader.broken();
}

// The first value of a repeated field, packed or not.
std::optional<uint64_t> first_bits(const WireField& field, uint64_t type) {
  if (field.type != WireType::kBytes) return field.value;
  WireReader packed(field.bytes);
  uint64_t bits = 0;
  const bool fixed = type == kFloat || type == kDouble;
  if (fixed ? packed.fixed(width_of(type), &bits) : packed.varint(&bits)) return bits;
  return std::nullopt;
}

}  // namespace

std::optional<double> scalar_of_tensor(std::string_view message) {
  uint64_t type = 0;
  std::string_view content;
  {
    WireReader reader(message);
    WireField field;
    while (reader.next(&field)) {
      if (field.number == 1 && field.type == WireType::kVarint) type = field.value;
      if (field.number == 2 && field.type == WireType::kBytes && !is_one_element(field.bytes)) return std::nullopt;
      if (field.number == 4 && field.type == WireType::kBytes) content = field.bytes;
    }
    if (reader.broken()) return std::nullopt;
  }
  const size_t width = width_of(type);
  if (width == 0) return std::nullopt;
  if (!content.empty()) {
    uint64_t bits = 0;
    if (content.size() != width || !WireReader(content).fixed(width, &bits)) return std::nullopt;
    return value_of(type, bits);
  }
  WireReader reader(message);
  WireField field;
  while (reader.next(&field)) {
    if (field.number != value_field(type)) continue;
    const std::optional<uint64_t> bits = first_bits(field, type);
    return bits ? std::optional(value_of(type, *bits)) : std::nullopt;
  }
  return 0;  // a value equal to the default is not stored
}

}  // namespace assay::train
