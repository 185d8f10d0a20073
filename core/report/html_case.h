// One case as HTML: in full for what does not pass, as a table row for what does. Pure but for reading the curves.
#pragma once

#include <string>
#include <vector>

#include "core/report/report_run.h"

namespace assay::report {

// CSS class of a verdict: "pass", "weak" (passes, but not bit for bit or as declared), "fail", "error", "skip".
std::string verdict_class(Verdict verdict, bool strict);
std::string verdict_badge(Verdict verdict, bool strict);

struct CaseDrawing {
  const ReportRun* run = nullptr;  // never null; borrowed
  std::string id;                  // of the element
  std::string name;                // as shown
  bool evidence = true;            // false: the page is full, only the head is drawn
  bool curves = true;              // read and draw them
};
std::string case_article(const ReportCase& report, const CaseDrawing& drawing);

// A row of the table of cases that need no article: verdict, name, figures, time.
std::string case_row(const ReportCase& report, const std::string& name, bool strict);

// The squares of the last runs, oldest first, this one last; "" without a history.
std::string history_squares(const ReportCase& report, const ReportRun& run);

}  // namespace assay::report
