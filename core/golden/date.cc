#include "core/golden/date.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace assay {
namespace {

constexpr std::string_view kForm = "0000-00-00";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int number(std::string_view digits) {
  int value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

}  // namespace

std::optional<int64_t> parse_date(std::string_view date) {
  const auto fits = [](char form, char c) { return form == '0' ? is_digit(c) : form == c; };
  if (!std::equal(kForm.begin(), kForm.end(), date.begin(), date.end(), fits)) return std::nullopt;
  const std::chrono::year_month_day day{std::chrono::year(number(date.substr(0, 4))),
                                        std::chrono::month(static_cast<unsigned>(number(date.substr(5, 2)))),
                                        std::chrono::day(static_cast<unsigned>(number(date.substr(8, 2))))};
  if (!day.ok()) return std::nullopt;
  return std::chrono::sys_days(day).time_since_epoch().count();
}

std::string utc_today() { return utc_now().substr(0, kForm.size()); }

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace assay
