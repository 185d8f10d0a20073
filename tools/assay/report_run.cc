#include "tools/assay/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/report/wording.h"
#include "core/run/events.h"
#include "core/run/reproduce.h"
#include "nlohmann/json.hpp"
#include "tools/assay/version.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLogTailBytes = 4000;

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

struct Journal {
  fs::path folder;
  double started = 0;
  uint64_t bytes = 0;
};

// When the run of this journal began; 0: no journal, or that of a shard, which is no run by itself.
double start_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  if (!std::getline(stream, line)) return 0;
  const Result<nlohmann::ordered_json> event = run::parse_line(line);
  if (!event || (*event)["event"] != run::event::kRunStarted || event->contains("shard")) return 0;
  const auto time = event->find("t");
  return time != event->end() && time->is_number() ? time->get<double>() : 0;
}

std::vector<Journal> earlier_journals(const std::string& directory, const report::ReportRun& run) {
  std::vector<Journal> found;
  std::error_code code;
  for (fs::directory_iterator at(directory, code), end; !code && at != end; at.increment(code)) {
    const fs::path file = at->path() / "results.jsonl";
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored) || fs::equivalent(at->path(), run.folder, ignored)) continue;
    const double started = start_of(file);
    if (started > 0 && (run.started == 0 || started <= run.started)) {
      found.push_back({at->path(), started, fs::file_size(file, ignored)});
    }
  }
  std::sort(found.begin(), found.end(), [](const Journal& a, const Journal& b) {
    return a.started != b.started ? a.started > b.started : a.folder > b.folder;
  });
  if (found.size() > kMaxHistoryRuns) found.resize(kMaxHistoryRuns);
  return found;
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

report::ReportCase report_case(const run::CaseOutcome& outcome, bool strict) {
  const run::CaseSummary& summary = outcome.summary;
  report::ReportCase made{.name = outcome.name,
                          .path = outcome.path,
                          .relation = outcome.relation,
                          .verdict = outcome.verdict,
                          .summary = summary_line(summary),
                          .reproduce = outcome.reproduce,
                          .seconds = summary.seconds,
                          .actual = outcome.actual,
                          .figures = {.engine = summary.engine,
                                      .backend = summary.backend,
                                      .device = summary.device,
                                      .platform = summary.platform,
                                      .arithmetic = summary.arithmetic,
                                      .requests = summary.requests,
                                      .batch = summary.batch,
                                      .prompt_tokens = summary.prompt_tokens,
                                      .generated_tokens = summary.generated_tokens,
                                      .peak_rss = summary.peak_rss,
                                      .prefill_rate = summary.prefill_rate,
                                      .decode_rate = summary.decode_rate,
                                      .tpot_median = summary.tpot_median,
                                      .load_seconds = summary.load_seconds,
                                      .first_token_seconds = summary.first_token_seconds}};
  if (summary.has_difference) made.figures.max_abs_logprob_difference = summary.max_abs_difference;
  for (const run::Repeat& one : outcome.repeats) {
    made.repeats.push_back({one.verdict, one.reason, one.seconds, one.identical_to_first, one.difference});
  }
  word_verdict(&made);
  if (!passes(outcome.verdict.verdict, strict)) made.log_tail = log_tail(outcome.log);
  return made;
}

std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + run::shell_word(word);
  return line;
}

report::ReportRun report_run(const run::RunRecord& record) {
  report::ReportRun made{.run_id = record.info.run_id,
                         .version = kVersion,
                         .command = command_line(record.command),
                         .folder = record.info.output.string(),
                         .started = record.started,
                         .seconds = record.summary.seconds,
                         .environment = record.environment,
                         .strict = record.strict,
                         .finished = record.finished,
                         .running = record.running,
                         .cancelled = record.summary.cancelled,
                         .filtered = record.info.filtered,
                         .unfinished = record.unfinished,
                         .never_started = record.never_started};
  made.cases.reserve(record.summary.outcomes.size());
  for (const run::CaseOutcome& outcome : record.summary.outcomes) {
    made.cases.push_back(report_case(outcome, record.strict));
  }
  if (record.unplanned > 0) {
    run::CaseOutcome lost;
    lost.name = fmt::format("{} without a name", record.unplanned);
    lost.verdict.verdict = Verdict::kInfra;
    lost.verdict.reason = cut_off_text(record);
    made.cases.push_back(report_case(lost, record.strict));
  }
  return made;
}

Status check_history(const std::string& directory) {
  std::error_code code;
  if (directory.empty() || std::filesystem::is_directory(directory, code)) return {};
  return not_found("--history " + directory + ": no such folder; expected one that holds output folders of runs");
}

void add_history(const std::string& directory, report::ReportRun* run) {
  uint64_t bytes = 0;
  for (const Journal& journal : earlier_journals(directory, *run)) {
    bytes += journal.bytes;
    if (bytes > kMaxHistoryBytes) {
      run->history_notes.push_back(fmt::format("Runs before {} are left out: the journals to read exceed {} MB.",
                                               report::utc_text(journal.started), kMaxHistoryBytes / 1'000'000));
      break;
    }
    const Result<run::RunRecord> record = run::read_run(journal.folder, run::Detail::kVerdicts);
    if (!record) {
      run->history_notes.push_back(record.status().message());
      continue;
    }
    std::error_code ignored;
    report::HistoryRun earlier{.folder = journal.folder.filename().string(),
                               .started = journal.started,
                               .has_page = fs::exists(journal.folder / "report.html", ignored)};
    for (const run::CaseOutcome& outcome : record->summary.outcomes) {
      earlier.cases[outcome.name] = {outcome.verdict.verdict, outcome.summary.tpot_median};
    }
    run->history.push_back(std::move(earlier));
  }
  std::reverse(run->history.begin(), run->history.end());
}

}  // namespace assay::cli
