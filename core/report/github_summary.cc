#include "core/report/github_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/golden/text.h"
#include "core/report/diagnosis.h"
#include "core/report/html_text.h"

namespace assay::report {
namespace {

constexpr size_t kFieldCodePoints = 600;  // of one reason or command
constexpr size_t kReserve = 200;          // bytes for the closing line
constexpr size_t kSmallestLimit = 1000;

// One line of text that neither HTML nor markdown takes for markup.
std::string plain(std::string_view text) {
  const std::string_view head = text::prefix(text, kFieldCodePoints);
  std::string out;
  for (const char c : html(head)) {
    if (std::string_view("\\`*_[]|#~@:$").find(c) != std::string_view::npos && c != '#') {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return head.size() < text.size() ? out + "..." : out;
}

std::string entry(const ReportCase& report, const std::string& name) {
  std::string out = fmt::format("<details><summary><b>{}</b> {}</summary>\n<p>{}</p>\n",
                                to_string(report.verdict.verdict), plain(name), plain(report.verdict.reason));
  for (const Diagnosis& one : diagnose(report)) {
    out += fmt::format("<p>Likely cause: <b>{}</b>. {}.</p>\n", plain(one.cause), plain(one.sentence));
  }
  if (!report.reproduce.empty()) out += fmt::format("<pre>{}</pre>\n", plain(report.reproduce));
  return out + "</details>\n";
}

}  // namespace

std::string github_summary(const ReportRun& run, size_t limit) {
  limit = std::max(limit, kSmallestLimit);
  const Totals sums = totals(run.cases, run.strict);
  std::string out =
      fmt::format("## assay: {} passed, {} failed, {} skipped\n\n", sums.passed, sums.failed, sums.skipped);
  if (!run.finished) out += fmt::format("**Incomplete:** {}.\n\n", incomplete_text(run));
  if (run.cancelled) out += "**Incomplete:** the run was cancelled.\n\n";
  std::string counts;
  for (const auto& [verdict, count] : sums.verdicts) counts += fmt::format(", {} {}", count, to_string(verdict));
  out += fmt::format("{} in {}{}\n\n", plural(sums.cases, "case"), duration(run.seconds), plain(counts));
  const std::vector<std::string> names = unique_names(run.cases);
  const std::vector<const ReportCase*> order = by_severity(run.cases, run.strict);
  size_t shown = 0;
  for (; shown < sums.failed; ++shown) {
    const std::string one = entry(*order[shown], names[static_cast<size_t>(order[shown] - run.cases.data())]);
    if (out.size() + one.size() + kReserve > limit) break;
    out += one;
  }
  if (shown < sums.failed) {
    out += fmt::format("\n{} more failed; report.html in the output folder shows them all.\n", sums.failed - shown);
  }
  return out;
}

Status append_github_summary(const std::string& path, const ReportRun& run) {
  std::error_code code;
  const auto present = std::filesystem::exists(path, code) ? std::filesystem::file_size(path, code) : 0;
  const size_t used = code ? 0 : static_cast<size_t>(present);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (used + kSmallestLimit <= kMaxSummaryBytes) file << github_summary(run, kMaxSummaryBytes - used);
  file.close();
  if (file) return {};
  return infra(fmt::format("{}: the step summary cannot be written; check that the folder exists and has room", path));
}

}  // namespace assay::report
