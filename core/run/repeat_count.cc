#include "core/run/repeat_count.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/discover/arguments.h"

namespace assay::run {
namespace {

constexpr const char* kRepeats = "N_REPEAT";

}  // namespace

const std::string* written_repeats(const TestCase& test) {
  const auto found = std::find_if(test.env_vars.begin(), test.env_vars.end(),
                                  [](const EnvVar& variable) { return variable.name == kRepeats; });
  return found == test.env_vars.end() ? nullptr : &found->value;
}

Result<int> repeats_wanted(const RunOptions& options, const CaseSettings& own, const std::string* n_repeat) {
  if (options.repeat > 0) return options.repeat;
  const auto given = options.variables.find(kRepeats);
  if (n_repeat == nullptr && given != options.variables.end() && !given->second.empty()) n_repeat = &given->second;
  if (n_repeat == nullptr) return std::max(own.repeat, 1);
  const Result<int64_t> number = discover::parse_int(*n_repeat);
  if (number && *number >= 1 && *number <= kMostRepeats) return static_cast<int>(*number);
  return invalid(fmt::format("N_REPEAT '{}': expected a whole number from 1 to {}", *n_repeat, kMostRepeats));
}

}  // namespace assay::run
