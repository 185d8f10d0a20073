// How long a case may take and when it began, for an engine that waits for others: member "case_time" of its options,
// where its schema has it: {"seconds": S, "began_ns": N}, N by the machine's monotonic clock.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace assay::run {

inline constexpr const char* kCaseTime = "case_time";

// The member as a plan has it, before the case begins.
nlohmann::ordered_json case_time(double seconds);

// The options with `now` as the case's beginning; unchanged where there is no member "case_time".
std::string with_case_begin(const std::string& options, std::chrono::steady_clock::time_point now);

}  // namespace assay::run
