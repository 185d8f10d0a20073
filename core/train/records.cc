#include "core/train/records.h"

#include <fmt/format.h>

#include <utility>

#include "core/train/crc32c.h"

namespace assay::train {
namespace {

constexpr uint64_t kLength = 8;
constexpr uint64_t kCrc = 4;

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

RecordReader::State RecordReader::stop(State state, std::string problem) {
  next_ = offset_;
  data_ = {};
  problem_ = std::move(problem);
  return state;
}

RecordReader::State RecordReader::next() {
  offset_ = next_;
  const std::string_view rest = bytes_.substr(offset_);
  if (rest.empty()) return State::kEnd;
  const auto torn = [&](const char* part) {
    return stop(State::kTorn, fmt::format("the record at byte {} ends inside its {}", offset_, part));
  };
  if (rest.size() < kLength + kCrc) return torn("header");
  const std::string_view length_bytes = rest.substr(0, kLength);
  if (masked_crc32c(length_bytes) != little_endian(rest.substr(kLength, kCrc))) {
    return stop(State::kCorrupt, fmt::format("the record at byte {} has a wrong checksum of its length", offset_));
  }
  const uint64_t length = little_endian(length_bytes);
  const std::string_view body = rest.substr(kLength + kCrc);
  if (body.size() < length || body.size() - length < kCrc) return torn("data");
  data_ = body.substr(0, length);
  if (masked_crc32c(data_) != little_endian(body.substr(length, kCrc))) {
    return stop(State::kCorrupt,
                fmt::format("the record at byte {} ({} bytes) has a wrong checksum of its data", offset_, length));
  }
  next_ = offset_ + kLength + kCrc + length + kCrc;
  return State::kRecord;
}

}  // namespace assay::train
