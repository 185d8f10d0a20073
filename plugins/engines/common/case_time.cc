#include "plugins/engines/common/case_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "plugins/engines/common/options_json.h"

namespace assay::engines {
namespace {

constexpr double kReserve = 0.1;          // of the case's time
constexpr double kMostReserve = 10;       // seconds
constexpr double kMostCaseSeconds = 1e9;  // 30 years; a clock in nanoseconds ends at 292

}  // namespace

double reserve_of(double case_seconds) { return std::min(case_seconds * kReserve, kMostReserve); }

CaseTime::Clock::time_point CaseTime::ends() const {
  if (!(seconds > 0)) return Clock::time_point::max();
  return began +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds - reserve_of(seconds)));
}

std::string CaseTime::text() const {
  if (!(seconds > 0)) return "";
  return fmt::format("the case's time is up (ASSAY.timeout is {:g} s, {:g} s of them are kept for judging)", seconds,
                     reserve_of(seconds));
}

Result<CaseTime> read_case_time(const std::string& json, const std::string& what) {
  CaseTime time;
  std::optional<int64_t> began;
  OptionsReader reader(json, what);
  reader.number("seconds", {.least = 0, .most = kMostCaseSeconds}, &time.seconds);
  reader.integer("began_ns", 0, INT64_MAX / 2, &began);
  if (Status read = reader.finish(); !read.ok()) return read;
  if (began) time.began = CaseTime::Clock::time_point(std::chrono::nanoseconds(*began));
  return time;
}

}  // namespace assay::engines
