// A run as reports draw it: plain data, the same whether it comes from a run that just ended or from its journal.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/report/report_case.h"

namespace assay::report {

// One earlier run, as far as a history shows it.
struct HistoryRun {
  struct Case {
    Verdict verdict = Verdict::kSkipped;
    double tpot_median = 0;  // seconds / token; 0: not known
  };
  std::string folder = {};                 // name of its output folder
  double started = 0;                      // seconds since 1970, UTC
  bool has_page = false;                   // it holds a report.html
  std::map<std::string, Case> cases = {};  // by name
};

struct ReportRun {
  std::string run_id = {};
  std::string version = {};  // of assay
  std::string command = {};  // as a shell reads it
  std::string folder = {};   // output folder
  double started = 0;        // seconds since 1970, UTC; 0: not known
  double seconds = 0;
  std::string environment = {};  // which golden files judged
  bool strict = false;           // EQUIVALENT does not pass
  bool finished = true;          // false: the runner was killed, or goes on
  bool running = false;          // not finished, and its writer lives
  bool cancelled = false;
  size_t filtered = 0;       // cases left out by --filter
  size_t unfinished = 0;     // started, but the runner was killed before their verdict
  size_t never_started = 0;  // planned, but the runner was killed before their turn
  std::vector<ReportCase> cases = {};
  std::vector<HistoryRun> history = {};         // oldest first, without this run
  std::vector<std::string> history_notes = {};  // folders that could not be read, one line each
};

// How a verdict counts.
enum class Outcome { kPass, kFailure, kError, kSkipped };

// DRIFT, DIVERGED, NOT_COMPARABLE, FLAKY, XPASS fail; INVALID, CRASHED and INFRA are errors. With `strict`, EQUIVALENT
// fails.
Outcome outcome(Verdict verdict, bool strict);
inline bool fails(Verdict verdict, bool strict) {
  const Outcome result = outcome(verdict, strict);
  return result == Outcome::kFailure || result == Outcome::kError;
}

struct Totals {
  size_t cases = 0;
  size_t passed = 0;
  size_t failed = 0;  // failures and errors
  size_t skipped = 0;
  std::vector<std::pair<Verdict, size_t>> verdicts = {};  // that occur, most severe first
};
Totals totals(const std::vector<ReportCase>& cases, bool strict);

// Pointers into `cases`: failures first, the most severe first, then by name; then what passes; then what was skipped.
std::vector<const ReportCase*> by_severity(const std::vector<ReportCase>& cases, bool strict);

// The names of the cases, made unique: a second "a/b" becomes "a/b (2)".
std::vector<std::string> unique_names(const std::vector<ReportCase>& cases);

// Why cases may be missing: "the run is still going on", "the runner was killed before the run ended"; "" when it
// ended.
std::string incomplete_text(const ReportRun& run);

// "2026-11-29 19:22:41 UTC"; "" for 0.
std::string utc_text(double seconds);

}  // namespace assay::report
