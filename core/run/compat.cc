#include "core/run/compat.h"

#include "assay/golden.h"
#include "core/compat/megatron_inference.h"
#include "core/discover/yaml_tree.h"
#include "core/train/uncompared.h"

namespace assay::run {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of a golden or results file

CompatVerdict failed(const Status& status) {
  return {CompatVerdict::kFailed, "FileNotFoundError: " + status.message()};
}

}  // namespace

CompatCase compat_case(const TestCase& test, const discover::Variables& variables, const std::string& golden) {
  return {.mode = test.mode,
          .test_type = test.test_type,
          .metrics = test.written_metrics,
          .uncompared = train::why_uncompared(test, variables),
          .xpass = test.test_evaluation == "xpass",
          .golden = golden};
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
  const bool ran = outcome.summary.requests > 0;
  if (outcome.verdict.verdict == Verdict::kSkipped && !(ran && !of.uncompared.empty())) return std::nullopt;
  if (!of.uncompared.empty()) {
    if (outcome.verdict.verdict == Verdict::kSkipped) return CompatVerdict{CompatVerdict::kSkipped, of.uncompared};
    if (!ran || outcome.verdict.verdict == Verdict::kInfra) return failed(not_found("the run did not get so far"));
    if (of.xpass) return CompatVerdict{CompatVerdict::kPassed, "Training failed as expected."};
    return CompatVerdict{CompatVerdict::kFailed, "Training failed."};
  }
  if (outcome.actual.empty()) return failed(not_found("no results, the run failed before they were compared"));
  if (of.test_type != "frozen-start") {
    return CompatVerdict{CompatVerdict::kSkipped,
                         "TEST_TYPE '" + of.test_type + "': inference is compared for frozen-start alone"};
  }
  if (!of.golden.empty()) return judge_compat_files(of.golden, outcome.actual, of.metrics, false);
  const Result<GoldenChoice> golden = resolve_golden(outcome.path, environment, outcome.summary.platform);
  if (!golden) return failed(golden.status());
  return judge_compat_files(golden->path, outcome.actual, of.metrics, false);
}

}  // namespace assay::run
