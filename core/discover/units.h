// Numbers with units in the ASSAY block.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::discover {

// "0.001", "1e-3": the whole text, finite; a decimal point or exponent is not needed.
std::optional<double> parse_number(std::string_view text);

// "120", "120s", "500ms", "2m", "1h" -> seconds, > 0.
std::optional<double> parse_duration(std::string_view text);

// "1000000", "512MB", "4GiB", "2G" -> bytes, > 0; KB, MB, GB are powers of 1000, KiB, MiB, GiB and K, M, G of 1024.
std::optional<uint64_t> parse_bytes(std::string_view text);

}  // namespace assay::discover
