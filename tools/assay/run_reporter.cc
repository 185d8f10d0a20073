#include "tools/assay/run_reporter.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/report/junit.h"

namespace assay::cli {
namespace {

constexpr size_t kLogTailBytes = 2000;

// The last lines of a log file, at most kLogTailBytes; empty when it cannot be read.
std::string log_tail(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<size_t>(file.tellg());
  const size_t length = std::min(size, kLogTailBytes);
  std::string text(length, '\0');
  file.seekg(static_cast<std::streamoff>(size - length));
  file.read(text.data(), static_cast<std::streamsize>(length));
  const size_t line = length < size ? text.find('\n') : std::string::npos;
  return line == std::string::npos ? text : text.substr(line + 1);
}

report::ReportCase report_case(const run::CaseOutcome& outcome, bool strict) {
  report::ReportCase made{.name = outcome.name,
                          .path = outcome.path,
                          .verdict = outcome.verdict,
                          .summary = summary_line(outcome.summary),
                          .reproduce = outcome.reproduce,
                          .log_tail = "",
                          .seconds = outcome.summary.seconds};
  if (!passes(outcome.verdict.verdict, strict)) made.log_tail = log_tail(outcome.log);
  return made;
}

nlohmann::ordered_json to_json(const run::CaseOutcome& outcome) {
  const run::CaseSummary& summary = outcome.summary;
  nlohmann::ordered_json difference;  // null: no logprobs were compared
  if (summary.has_difference) difference = summary.max_abs_difference;
  return {{"name", outcome.name},
          {"path", outcome.path},
          {"verdict", to_string(outcome.verdict.verdict)},
          {"reason", outcome.verdict.reason},
          {"golden", outcome.verdict.golden},
          {"engine", summary.engine},
          {"backend", summary.backend},
          {"device", summary.device},
          {"requests", summary.requests},
          {"batch", summary.batch},
          {"peak_rss_bytes", summary.peak_rss},
          {"prefill_tokens_per_s", summary.prefill_rate},
          {"decode_tokens_per_s", summary.decode_rate},
          {"load_seconds", summary.load_seconds},
          {"first_token_seconds", summary.first_token_seconds},
          {"seconds", summary.seconds},
          {"max_abs_logprob_difference", difference},
          {"reproduce", outcome.reproduce}};
}

}  // namespace

std::string summary_line(const run::CaseSummary& summary) {
  if (summary.engine.empty()) return {};
  std::string line = summary.engine;
  if (!summary.backend.empty()) {
    line += " on " + summary.backend;
    if (!summary.arithmetic.empty()) line += " " + summary.arithmetic;
    if (!summary.device.empty()) line += " (" + summary.device + ")";
  }
  line += fmt::format(", {} requests", summary.requests);
  if (summary.batch > 0) line += fmt::format(", batch {}", summary.batch);
  if (summary.peak_rss > 0) line += fmt::format(", peak {:.0f} MB", static_cast<double>(summary.peak_rss) / 1e6);
  if (summary.prefill_rate > 0) line += fmt::format(", prefill {:.0f} tokens/s", summary.prefill_rate);
  if (summary.decode_rate > 0) line += fmt::format(", decode {:.0f} tokens/s", summary.decode_rate);
  if (summary.has_difference) line += fmt::format(", max |delta logprob| {:.2g}", summary.max_abs_difference);
  return line;
}

RunReporter::RunReporter(std::ostream& out, report::ConsoleOptions options, ReportTargets targets)
    : out_(out), options_(options), targets_(std::move(targets)) {}

void RunReporter::run_started(const run::RunInfo& info) {
  if (!targets_.json) console_ = std::make_unique<report::Console>(out_, options_, info.cases);
}

void RunReporter::case_started(const std::string& name, const std::string& /*worker*/) {
  if (console_) console_->progress(name);
}

void RunReporter::case_finished(const run::CaseOutcome& outcome) {
  cases_.push_back(report_case(outcome, options_.strict));
  if (console_) console_->finished(cases_.back());
}

void RunReporter::note(const std::string& event, const std::string& line) {
  if (console_) console_->progress(event + ": " + line);
}

void RunReporter::run_finished(const run::RunSummary& summary) {
  if (console_) console_->summary(cases_, summary.seconds, targets_.output_folder);
  if (targets_.json) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const run::CaseOutcome& outcome : summary.outcomes) array.push_back(to_json(outcome));
    out_ << array.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  }
  status_ = report::write_junit(targets_.output_folder + "/junit.xml", cases_, options_.strict);
  if (!targets_.junit_file.empty()) {
    const Status extra = report::write_junit(targets_.junit_file, cases_, options_.strict);
    if (status_.ok()) status_ = extra;
  }
}

}  // namespace assay::cli
