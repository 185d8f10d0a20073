// "Did you mean": the known name closest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay::discover {

// Edit distance (insertion, deletion, replacement, swap of neighbours), or `limit` + 1 once it is above `limit`.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit);

// The closest of `known` within about a third of the length of `name`; the first of equals; empty: none is close.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

// " (did you mean 'x'?)", or "" when nothing is close.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);

}  // namespace assay::discover
