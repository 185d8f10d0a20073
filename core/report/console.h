// The console report: progress on a terminal, plain lines elsewhere.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/report/report_case.h"

namespace assay::report {

struct ConsoleOptions {
  bool colour = false;    // ANSI colours
  bool terminal = false;  // a status line that is drawn over
  bool strict = false;    // EQUIVALENT does not pass
  bool quiet = false;     // passing cases get no line of their own
};

// Writes to a stream that outlives it. Not thread-safe.
class Console {
 public:
  Console(std::ostream& out, ConsoleOptions options, size_t case_count);

  // Redraws the status line (terminals only): what runs now.
  void progress(const std::string& what);

  // One line for a finished case; evidence below it when it does not pass.
  void finished(const ReportCase& report);

  // The closing lines: counts by verdict, failures again by name, the output folder.
  void summary(const std::vector<ReportCase>& cases, double seconds, const std::string& output_folder);

 private:
  void clear_status();

  std::ostream& out_;
  ConsoleOptions options_;
  size_t case_count_;
  size_t finished_ = 0;
  bool status_shown_ = false;
};

}  // namespace assay::report
