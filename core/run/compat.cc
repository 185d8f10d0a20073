#include "core/run/compat.h"

#include <algorithm>

#include "assay/golden.h"
#include "core/compat/megatron_inference.h"
#include "core/discover/yaml_tree.h"

namespace assay::run {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of a golden or results file

CompatVerdict failed(const Status& status) {
  return {CompatVerdict::kFailed, "FileNotFoundError: " + status.message()};
}

bool has_variable(const TestCase& test, const std::string& name, const std::string& value) {
  return std::any_of(test.env_vars.begin(), test.env_vars.end(),
                     [&](const EnvVar& variable) { return variable.name == name && variable.value == value; });
}

}  // namespace

CompatCase compat_case(const TestCase& test, const std::map<std::string, std::string>& environment) {
  const auto lightweight = environment.find("ENABLE_LIGHTWEIGHT_MODE");
  return {.mode = test.mode,
          .test_type = test.test_type,
          .metrics = test.written_metrics,
          .lightweight = (lightweight != environment.end() && lightweight->second == "true") ||
                         has_variable(test, "ENABLE_LIGHTWEIGHT_MODE", "true"),
          .skips = has_variable(test, "SKIP_PYTEST", "1")};
}

CompatVerdict judge_compat_files(const std::string& golden, const std::string& actual, const CompatMetrics& metrics,
                                 bool lightweight) {
  if (lightweight) return compat::judge_inference("", "", metrics, lightweight);
  const Result<std::string> expected = discover::read_file(golden, kMostBytes);
  if (!expected) return failed(expected.status());
  const Result<std::string> results = discover::read_file(actual, kMostBytes);
  if (!results) return failed(results.status());
  return compat::judge_inference(*expected, *results, metrics);
}

std::optional<CompatVerdict> judge_compat(const CompatCase& of, const std::string& environment,
                                          const CaseOutcome& outcome) {
  if (!outcome.relation.empty() || of.mode != "inference") return std::nullopt;
  if (outcome.verdict.verdict == Verdict::kSkipped) return std::nullopt;
  if (of.lightweight || of.skips) {
    return CompatVerdict{CompatVerdict::kSkipped, of.skips ? "SKIP_PYTEST is 1" : "ENABLE_LIGHTWEIGHT_MODE is true"};
  }
  if (outcome.actual.empty()) return failed(not_found("no results, the run failed before they were compared"));
  if (of.test_type != "frozen-start") {
    return CompatVerdict{CompatVerdict::kSkipped,
                         "TEST_TYPE '" + of.test_type + "': inference is compared for frozen-start alone"};
  }
  const Result<GoldenChoice> golden = resolve_golden(outcome.path, environment, outcome.summary.platform);
  if (!golden) return failed(golden.status());
  return judge_compat_files(golden->path, outcome.actual, of.metrics, of.lightweight);
}

}  // namespace assay::run
