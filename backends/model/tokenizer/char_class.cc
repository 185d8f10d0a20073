#include "backends/model/tokenizer/char_class.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

constexpr size_t kCodePoints = 0x110000;

constexpr uint32_t kRanges[] = {
#include "backends/model/tokenizer/char_class_ranges.inc"
};

}  // namespace

CharClasses::CharClasses() : symbol_(kCodePoints) {
  for (size_t i = 0; i < std::size(kRanges); ++i) {
    const size_t first = kRanges[i] >> 8;
    const size_t end = i + 1 < std::size(kRanges) ? kRanges[i + 1] >> 8 : kCodePoints;
    std::fill(symbol_.begin() + first, symbol_.begin() + end, static_cast<char>(kRanges[i] & 0xFF));
  }
}

std::string CharClasses::symbols(std::string_view valid) const {
  std::string out;
  out.reserve(valid.size());
  for (size_t offset = 0; offset < valid.size();) {
    const utf8::Decoded decoded = utf8::decode_at(valid, offset);
    out.push_back(symbol_[decoded.code_point]);
    offset += decoded.length;
  }
  return out;
}

}  // namespace assay::model
