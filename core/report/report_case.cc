#include "core/report/report_case.h"

#include "core/compare/render.h"
#include "core/report/wording.h"

namespace assay::report {

std::string evidence_text(const ReportCase& report) {
  std::string text = worded(report, compare::render_verdict_text(report.verdict));
  if (!report.reproduce.empty()) text += "again: " + report.reproduce + "\n";
  return text;
}

}  // namespace assay::report
