// From the evidence of a verdict to its likely cause, in plain words. Each rule names what it saw; where the evidence
// does not support a cause, nothing is said. Pure functions, safe from any thread.
#pragma once

#include <string>
#include <vector>

#include "core/report/report_case.h"

namespace assay::report {

struct Diagnosis {
  std::string cause;     // a few words: "rounding", "state left over by the previous request"
  std::string sentence;  // why: what the evidence shows
};

// The likely causes, the best supported first, at most kMaxDiagnoses; empty for cases that are IDENTICAL, and where no
// rule applies.
std::vector<Diagnosis> diagnose(const ReportCase& report);
inline constexpr size_t kMaxDiagnoses = 3;

// What the verdict of a case means, for someone who has never seen one: one or two sentences.
std::string verdict_meaning(const ReportCase& report);

}  // namespace assay::report
