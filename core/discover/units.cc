#include "core/discover/units.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace assay::discover {
namespace {

// Splits "12.5 GiB" into number and unit, without the blanks between.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  double value = 0;
  const char* begin = text.data();
  if (text.starts_with('+')) ++begin;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return std::pair{value, unit};
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts || !parts->second.empty() || text.ends_with(' ')) return std::nullopt;
  return parts->first;
}

std::optional<double> parse_duration(std::string_view text) {
  constexpr double kLongestSeconds = 1e9;  // 30 years; a clock in nanoseconds ends at 292
  const auto parts = number_and_unit(text);
  if (!parts || parts->first <= 0) return std::nullopt;
  for (const auto& [unit, seconds] :
       {std::pair<std::string_view, double>{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}}) {
    if (parts->second == unit && parts->first * seconds <= kLongestSeconds) return parts->first * seconds;
  }
  return std::nullopt;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts || parts->first <= 0) return std::nullopt;
  constexpr double kKi = 1024;
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},
                                                            {"B", 1},
                                                            {"KB", 1e3},
                                                            {"MB", 1e6},
                                                            {"GB", 1e9},
                                                            {"K", kKi},
                                                            {"M", kKi * kKi},
                                                            {"G", kKi * kKi * kKi},
                                                            {"KiB", kKi},
                                                            {"MiB", kKi * kKi},
                                                            {"GiB", kKi * kKi * kKi}};
  for (const auto& [unit, factor] : kUnits) {
    const double bytes = parts->first * factor;
    if (parts->second == unit && bytes >= 1 && bytes < 1e18) return static_cast<uint64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace assay::discover
