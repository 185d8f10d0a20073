// Days and times of UTC as texts. Safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// Days since 1970-01-01 of "YYYY-MM-DD"; nullopt: another form, or a day that no calendar has.
std::optional<int64_t> parse_date(std::string_view date);

std::string utc_today();  // "2026-11-29"
std::string utc_now();    // "2026-11-29T19:22:41Z"

}  // namespace assay
