// Runs made by hand for the tests of reports.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/report/report_run.h"

namespace assay::report::sample {

inline ReportCase one_case(const std::string& name, Verdict verdict, const std::string& reason = "") {
  ReportCase made;
  made.name = name;
  made.path = "cases/" + name;
  made.verdict.verdict = verdict;
  made.verdict.reason = reason;
  return made;
}

inline MetricVerdict metric(const std::string& name, Verdict verdict, std::vector<Finding> findings = {}) {
  return {name, verdict, std::move(findings)};
}

inline Finding finding(Verdict verdict, const std::string& request, int64_t index, const std::string& message = "m") {
  Finding made;
  made.verdict = verdict;
  made.request = request;
  made.index = index;
  made.message = message;
  return made;
}

// Evidence over all generated tokens of a request, ids and texts "<id>", logprob -1 on both sides.
inline RequestEvidence evidence(const std::string& request, const std::vector<int32_t>& golden,
                                const std::vector<int32_t>& result) {
  RequestEvidence made;
  made.request = request;
  made.golden_tokens = static_cast<int64_t>(golden.size());
  made.result_tokens = static_cast<int64_t>(result.size());
  for (size_t i = 0; i < std::max(golden.size(), result.size()); ++i) {
    AlignedToken token;
    if (i < golden.size()) token.golden = TokenView{golden[i], fmt::format(" t{}", golden[i]), -1.0};
    if (i < result.size()) token.result = TokenView{result[i], fmt::format(" t{}", result[i]), -1.0};
    const bool same = i < golden.size() && i < result.size() && golden[i] == result[i];
    if (!same && made.first_divergent < 0) made.first_divergent = static_cast<int64_t>(i);
    made.tokens.push_back(std::move(token));
  }
  return made;
}

inline std::vector<int32_t> ids(int32_t first, size_t count) {
  std::vector<int32_t> list;
  for (size_t i = 0; i < count; ++i) list.push_back(first + static_cast<int32_t>(i));
  return list;
}

inline Reanchoring again(uint64_t positions, uint64_t near_ties, uint64_t true_splits, bool reproduced) {
  Reanchoring made;
  made.method = "forced";
  made.positions = positions;
  made.near_ties = near_ties;
  made.true_splits = true_splits;
  made.reproduced = reproduced;
  return made;
}

}  // namespace assay::report::sample
