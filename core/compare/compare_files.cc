#include <future>

#include "core/compare/judge.h"

namespace assay::compare {

CaseVerdict compare_files(const std::string& golden, const std::string& actual, const JudgeOptions& options) {
  const auto refused = [&](Verdict verdict, const Status& status) {
    CaseVerdict result;
    result.verdict = verdict;
    result.reason = status.message();
    result.golden = golden;
    return result;
  };
  // Both at once, one on a thread of its own (or in turn where the system gives none).
  std::future<Result<ResultSet>> other = std::async(read_results, actual);
  const Result<ResultSet> reference = read_results(golden);
  if (!reference) {
    const bool missing = reference.status().code() == StatusCode::kNotFound;
    return refused(missing ? Verdict::kNotComparable : Verdict::kInvalid, reference.status().with("golden"));
  }
  const Result<ResultSet> candidate = other.get();
  if (!candidate) return refused(Verdict::kInvalid, candidate.status().with("result"));
  return judge_case({.options = &options, .golden = &*reference, .golden_missing = "", .actual = &*candidate});
}

}  // namespace assay::compare
