// The rules behind diagnosis.h, one a family of causes. Each appends what it recognises and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/report/diagnosis.h"

namespace assay::report {

using Diagnoses = std::vector<Diagnosis>;

// Outputs of other requests; else other inputs: prompt ids that differ, doubled or missing first token, cut prompts.
void diagnose_prompts(const CaseVerdict& verdict, Diagnoses& found);

// State left over from request to request, positions at which all requests part.
void diagnose_requests(const CaseVerdict& verdict, Diagnoses& found);

// NaN and infinities, empty results, requests missing.
void diagnose_broken_output(const ReportCase& report, Diagnoses& found);

// Token lists that are edits of each other: dropped, repeated, exchanged, changed alone.
void diagnose_edits(const ReportCase& report, Diagnoses& found);

// What re-anchoring says: rounding, a local fault, a fault everywhere, a run that does not repeat itself.
void diagnose_reanchoring(const ReportCase& report, Diagnoses& found);

// Equal tokens: text alone, logprobs alone, routing alone.
void diagnose_numbers(const CaseVerdict& verdict, Diagnoses& found);

// What a relation that does not hold points at.
void diagnose_relation(const ReportCase& report, Diagnoses& found);

// Performance metrics, the environment, verdicts that are no comparison of outputs.
void diagnose_rest(const ReportCase& report, Diagnoses& found);

// Ids of both sides over the shown window, as far as known.
struct Window {
  int64_t first = 0;            // generated position of the first element
  std::vector<int32_t> golden;  // ids; shorter where a side ends or is not known
  std::vector<int32_t> result;
  std::optional<size_t> differs;  // first index of the window at which they differ
};
Window window_of(const RequestEvidence& evidence);

// The verdict of a metric; nullopt: it was not judged.
std::optional<Verdict> verdict_of(const CaseVerdict& verdict, const std::string& metric);

// "request 3" or "all 4 requests".
std::string requests_text(const std::vector<std::string>& ids);

}  // namespace assay::report
