#include "tools/assay/run_reporter.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "core/golden/text.h"
#include "core/report/github_summary.h"
#include "core/report/html_page.h"
#include "core/report/junit.h"
#include "core/report/report_json.h"
#include "core/report/tap.h"
#include "core/run/shards.h"
#include "tools/assay/command.h"

namespace assay::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kJunitInterval{3};
constexpr int kJunitShare = 20;  // writing takes at most one part in so many of the time

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RunReporter::RunReporter(std::ostream& out, report::ConsoleOptions options, ReportTargets targets, run::RunRecord about)
    : out_(out), options_(options), targets_(std::move(targets)), about_(std::move(about)) {}

void RunReporter::keep(const Status& status) {
  if (status_.ok()) status_ = status;
}

std::vector<Verdict> RunReporter::verdicts() const {
  std::vector<Verdict> list;
  for (const report::ReportCase& one : so_far_.cases) list.push_back(one.verdict.verdict);
  return list;
}

void RunReporter::run_started(const run::RunInfo& info) {
  about_.info = info;
  about_.started = info.started > 0 ? info.started : seconds_since_1970();
  so_far_ = report_run(about_);  // not finished
  if (targets_.json) return;
  if (info.shard.index > 0) out_ << run::describe(info.shard) << "\n";
  if (!info.resumed.empty()) out_ << text::printable(info.resumed) << "\n";
  console_ = std::make_unique<report::Console>(out_, options_, info.cases - info.kept);
}

void RunReporter::case_started(const std::string& name, const std::string& /*worker*/) {
  if (console_) console_->progress(name);
}

void RunReporter::case_finished(const run::CaseOutcome& outcome) {
  so_far_.cases.push_back(report_case(outcome, options_.strict));
  if (console_) console_->finished(so_far_.cases.back());
  refresh_junit(report::fails(outcome.verdict.verdict, options_.strict));
}

void RunReporter::case_kept(const run::CaseOutcome& outcome) {
  so_far_.cases.push_back(report_case(outcome, options_.strict));
}

void RunReporter::refresh_junit(bool failure) {
  const Clock::time_point now = Clock::now();
  if (now < (failure ? next_junit_of_failure_ : next_junit_)) return;
  so_far_.seconds = seconds_since_1970() - so_far_.started;
  keep(report::write_junit(about_.info.output / "junit.xml", so_far_));
  const Clock::time_point end = Clock::now();
  next_junit_of_failure_ = end + kJunitShare * (end - now);
  next_junit_ = std::max<Clock::time_point>(next_junit_of_failure_, end + kJunitInterval);
}

void RunReporter::note(const std::string& event, const std::string& line) {
  if (console_) console_->progress(event + ": " + line);
}

void RunReporter::run_finished(const run::RunSummary& summary) {
  const std::filesystem::path& output = about_.info.output;
  if (console_) console_->summary(so_far_.cases, summary.seconds, output.string());
  about_.finished = true;
  about_.summary = summary;
  report::ReportRun run = report_run(about_);
  if (targets_.json) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const report::ReportCase& report : run.cases) array.push_back(report::flat_case_json(report));
    out_ << array.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  }
  keep(report::write_junit(output / "junit.xml", run));
  if (!targets_.junit.empty()) keep(report::write_junit(targets_.junit, run));
  if (!targets_.tap.empty()) keep(report::write_tap(targets_.tap, run));
  keep(report::write_json(output / "report.json", run));
  add_history(targets_.history.empty() ? output.parent_path().string() : targets_.history, &run);
  keep(report::write_html(output / "report.html", run));
  if (!targets_.github.empty()) keep(report::append_github_summary(targets_.github, run));
}

std::optional<int> broken_run(const Result<run::RunSummary>& summary, const RunReporter& reporter, bool strict) {
  const Status& status = summary ? reporter.status() : summary.status();
  if (status.ok()) return std::nullopt;
  const int code = fail(status);
  return exit_code(reporter.verdicts(), strict) == kExitFailed ? kExitFailed : code;
}

}  // namespace assay::cli
