#include "core/report/diagnosis.h"

#include "core/report/diagnosis_rules.h"
#include "core/report/wording.h"

namespace assay::report {
namespace {

std::string meaning_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSkipped:
      return "Not judged: something that the case asks for is absent on this machine, or a word says that nothing is "
             "compared. Neither a pass nor a failure.";
    case Verdict::kIdentical:
      return "Every compared value is equal to the golden.";
    case Verdict::kEquivalent:
      return "Not bit for bit the golden, but within tolerance: numbers differ by no more than allowed, and tokens "
             "only "
             "where the two candidates were as good as equal.";
    case Verdict::kXfail:
      return "Fails, as declared for this case.";
    case Verdict::kWaived:
      return "Fails, but a waiver that has not expired covers it.";
    case Verdict::kXpass:
      return "Passes although it was declared to fail: the declaration is out of date and should go.";
    case Verdict::kDrift:
      return "The engine says the same, but its numbers moved further than the tolerance allows.";
    case Verdict::kDiverged:
      return "The engine says something else than the golden, and rounding does not explain it.";
    case Verdict::kFlaky:
      return "Repeats of the same case on the same machine do not agree with each other.";
    case Verdict::kNotComparable:
      return "Nothing was judged: the golden, a metric or an ability of the engine is missing. What is missing never "
             "passes.";
    case Verdict::kInvalid:
      return "The comparison has no meaning: the case, the golden or the result is broken, or the two answer different "
             "questions.";
    case Verdict::kInfra:
      return "The machine, driver, launcher or disk failed around the engine. This says nothing about the engine.";
    case Verdict::kCrashed:
      return "The engine died, hung or ran out of memory while a request ran. That is a regression, not bad luck.";
  }
  return "";
}

}  // namespace

std::vector<Diagnosis> diagnose(const ReportCase& report) {
  const CaseVerdict& verdict = report.verdict;
  Diagnoses found;
  if (verdict.verdict == Verdict::kIdentical || verdict.verdict == Verdict::kSkipped) return found;
  diagnose_prompts(verdict, found);
  diagnose_broken_output(report, found);
  diagnose_requests(verdict, found);
  diagnose_edits(report, found);
  diagnose_reanchoring(report, found);
  diagnose_numbers(verdict, found);
  diagnose_rest(report, found);
  for (Diagnosis& one : found) one = {worded(report, one.cause), worded(report, one.sentence)};
  Diagnoses suspects;
  diagnose_relation(report, suspects);
  found.insert(found.begin(), suspects.begin(), suspects.end());
  if (found.size() > kMaxDiagnoses) found.resize(kMaxDiagnoses);
  return found;
}

std::string verdict_meaning(const ReportCase& report) {
  if (report.relation.empty()) return meaning_of(report.verdict.verdict);
  if (report.verdict.verdict == Verdict::kNotComparable) {
    return "The relation was not shown to hold: what it is about did not happen, or the engine lacks an option or an "
           "ability for it. What is missing never passes.";
  }
  return worded(report, meaning_of(report.verdict.verdict));
}

}  // namespace assay::report
