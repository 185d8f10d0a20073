// Units in the last place of the dtypes that logits have. Pure functions, no state.
#pragma once

#include <optional>
#include <string_view>

namespace assay::compare {

// Bits of mantissa, hidden bit included.
inline constexpr int kFp32Mantissa = 24;
inline constexpr int kFp16Mantissa = 11;
inline constexpr int kBf16Mantissa = 8;

// Of "fp32", "fp16", "bf16"; nullopt: another name.
std::optional<int> mantissa_bits(std::string_view dtype);

// Distance of neighbouring values with `mantissa` bits in the binade of |magnitude|: 2^(floor(log2 |magnitude|) + 1 -
// mantissa). 0 and values below 2^-14 (where fp16 stops being normal) count as 2^-14. `magnitude` must be finite.
double ulp(int mantissa, double magnitude);

}  // namespace assay::compare
