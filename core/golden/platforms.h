// Names of platforms.
#pragma once

#include <array>
#include <string_view>

namespace assay {

// Those that goldens are known to be filed under, "any" first.
inline constexpr std::array<std::string_view, 15> kKnownPlatforms = {
    "any",       "cpu_x86_64", "cpu_aarch64", "dgx_a100",  "dgx_h100",  "dgx_h200", "dgx_b200", "dgx_b300",
    "dgx_gb200", "dgx_gb300",  "dgx_v100",    "dgx_gh200", "dgx_spark", "rtx_4090", "rtx_5090"};

}  // namespace assay
