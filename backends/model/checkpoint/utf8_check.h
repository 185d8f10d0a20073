// UTF-8 as Python's pickle reads it: surrogates are let through (surrogatepass), overlong forms are not.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::model {

inline bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (size == 0 || size > text.size() - i) return false;
    for (size_t k = 1; k < size; ++k) {
      if ((static_cast<uint8_t>(text[i + k]) & 0xc0U) != 0x80U) return false;
    }
    const auto second = static_cast<uint8_t>(size > 1 ? text[i + 1] : 0);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
      return false;
    }
    i += size;
  }
  return true;
}

}  // namespace assay::model
