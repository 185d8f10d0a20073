#include "tools/self_test/trial.h"

#include <algorithm>
#include <array>

#include "assay/golden.h"

namespace assay::self_test {
namespace {

// The set as text, without what differs from call to call.
std::string text_without_times(ResultSet set) {
  for (RequestRecord& record : set.requests) {
    record.tpot.reset();
    record.latency.reset();
    record.extra.clear();
  }
  set.quantities.clear();
  set.extra.clear();
  return results_text(set);
}

}  // namespace

std::string_view to_string(Fate fate) {
  constexpr std::array<std::string_view, 5> kNames = {"killed", "escaped", "misnamed", "no effect", "not run"};
  return kNames.at(static_cast<size_t>(fate));
}

Fate fate_of(const FaultRow& fault, const Observation& seen) {
  if (seen.verdict == Verdict::kInfra || seen.verdict == Verdict::kSkipped) return Fate::kNotRun;
  if (seen.place.empty()) return Fate::kNoEffect;
  const bool equal = seen.same_as_golden && seen.shows_in_result;
  if (passes(seen.verdict)) return equal ? Fate::kNoEffect : Fate::kEscaped;
  if (std::find(fault.verdicts.begin(), fault.verdicts.end(), seen.verdict) == fault.verdicts.end()) {
    return Fate::kMisnamed;
  }
  return equal ? Fate::kNoEffect : Fate::kKilled;
}

std::string place_in_log(const std::string& log, const std::string& fault) {
  const std::string mark = "planted " + fault + ": ";
  const size_t begin = log.find(mark);
  if (begin == std::string::npos) return "";
  const size_t where = begin + mark.size();
  return log.substr(where, log.find('\n', where) - where);
}

std::string content_of(const std::string& path) {
  Result<ResultSet> set = read_results(path);
  return set ? text_without_times(*std::move(set)) : "";
}

bool same_results(const std::string& path, const std::string& content) {
  return !content.empty() && content_of(path) == content;
}

}  // namespace assay::self_test
