// Feeds the console, JUnit and JSON reports from the events of a run.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/report/console.h"
#include "core/run/run.h"

namespace assay::cli {

struct ReportTargets {
  bool json = false;          // a JSON array at the end instead of the console report
  std::string junit_file;     // besides OUTPUT/junit.xml; empty: none
  std::string output_folder;  // of the run
};

// Lives through one run; used by its thread alone. JUnit files are written when the run ends, also after crashes.
class RunReporter : public run::RunObserver {
 public:
  RunReporter(std::ostream& out, report::ConsoleOptions options, ReportTargets targets);

  void run_started(const run::RunInfo& info) override;
  void case_started(const std::string& name, const std::string& worker) override;
  void case_finished(const run::CaseOutcome& outcome) override;
  void note(const std::string& event, const std::string& line) override;
  void run_finished(const run::RunSummary& summary) override;

  // The first report file that could not be written.
  const Status& status() const { return status_; }

 private:
  std::ostream& out_;
  report::ConsoleOptions options_;
  ReportTargets targets_;
  std::unique_ptr<report::Console> console_;
  std::vector<report::ReportCase> cases_;  // in the order in which they finished
  Status status_;
};

// "static_legacy on cpu (...), 2 requests, batch 1, ...": the figures of one case on one line.
std::string summary_line(const run::CaseSummary& summary);

}  // namespace assay::cli
