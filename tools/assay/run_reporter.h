// Feeds all reports from the events of a run.
#pragma once

#include <chrono>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/report/console.h"
#include "core/run/read_run.h"
#include "tools/assay/report_run.h"

namespace assay::cli {

struct ReportTargets {
  bool json = false;         // a JSON array at the end instead of the console report
  std::string junit = {};    // besides OUTPUT/junit.xml; empty: none
  std::string tap = {};      // empty: none
  std::string github = {};   // step summary, appended to; empty: none
  std::string history = {};  // folder of run folders; empty: the one that holds the output folder
};

// Lives through one run; used by its thread alone. OUTPUT/report.html, report.json and junit.xml are written when the
// run ends, also after crashes and when it was cancelled. junit.xml is also rewritten on the way, so that a runner that
// is killed leaves one: at a failure, else every few seconds, never for more than a twentieth of the time.
class RunReporter : public run::RunObserver {
 public:
  // `about`: what is known before the run starts: command, environment, strict, info.output.
  RunReporter(std::ostream& out, report::ConsoleOptions options, ReportTargets targets, run::RunRecord about);

  void run_started(const run::RunInfo& info) override;
  void case_started(const std::string& name, const std::string& worker) override;
  void case_finished(const run::CaseOutcome& outcome) override;
  void case_kept(const run::CaseOutcome& outcome) override;
  void note(const std::string& event, const std::string& line) override;
  void run_finished(const run::RunSummary& summary) override;

  // The first report file that could not be written.
  const Status& status() const { return status_; }

  // As told when the run started.
  const run::RunInfo& info() const { return about_.info; }

  // Of the cases that are finished.
  std::vector<Verdict> verdicts() const;

 private:
  void refresh_junit(bool failure);
  void keep(const Status& status);

  std::ostream& out_;
  report::ConsoleOptions options_;
  ReportTargets targets_;
  run::RunRecord about_;
  std::unique_ptr<report::Console> console_;
  report::ReportRun so_far_;  // cases in the order in which they finished
  std::chrono::steady_clock::time_point next_junit_;
  std::chrono::steady_clock::time_point next_junit_of_failure_;
  Status status_;
};

// Exit code of a run that could not be done, or not be reported, to its end, which is said on stderr; a failed verdict
// outranks both. Nullopt: neither.
std::optional<int> broken_run(const Result<run::RunSummary>& summary, const RunReporter& reporter, bool strict);

}  // namespace assay::cli
