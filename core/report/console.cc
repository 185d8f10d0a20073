#include "core/report/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "core/golden/text.h"

namespace assay::report {
namespace {

constexpr size_t kStatusWidth = 100;  // columns: a longer status line would wrap and could not be drawn over

std::string paint(const std::string& text, Verdict verdict, const ConsoleOptions& options) {
  if (!options.colour) return text;
  const int colour = verdict == Verdict::kSkipped ? 33 : passes(verdict, options.strict) ? 32 : 31;
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
}

// Every line of `text` behind `margin`; control characters are spelled out, so that nothing a case, an engine or a log
// says can move the cursor or pass for a line of ours.
std::string indented(std::string_view text, std::string_view margin = "    ") {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.append(margin).append(text::printable(text.substr(0, end)));
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

Console::Console(std::ostream& out, ConsoleOptions options, size_t case_count)
    : out_(out), options_(options), case_count_(case_count) {}

void Console::clear_status() {
  if (status_shown_) out_ << "\r\x1b[K";
  status_shown_ = false;
}

void Console::progress(const std::string& what) {
  if (!options_.terminal) return;
  clear_status();
  out_ << fmt::format("[{}/{}] {}", finished_, case_count_, text::printable(what)).substr(0, kStatusWidth)
       << std::flush;
  status_shown_ = true;
}

void Console::finished(const ReportCase& report) {
  clear_status();
  ++finished_;
  const Verdict verdict = report.verdict.verdict;
  const bool fine = passes(verdict, options_.strict);
  if (fine && options_.quiet && !disagrees(report.verdict, options_.strict)) return;
  out_ << fmt::format("{} {}  {}  {:.2f} s\n", paint(fmt::format("{:<14}", to_string(verdict)), verdict, options_),
                      text::printable(report.name), text::printable(report.summary), report.seconds);
  if (verdict == Verdict::kSkipped) {
    out_ << "    " << text::printable(report.verdict.reason) << "\n";
  } else if (!fine) {
    out_ << indented(evidence_text(report));
    if (!report.log_tail.empty()) out_ << "    engine log:\n" << indented(report.log_tail, "        ") << "\n";
  } else if (!report.verdict.reason.empty()) {
    out_ << "    " << text::printable(report.verdict.reason) << "\n";
  }
  if (fine && !report.verdict.declared.empty()) out_ << "    " << text::printable(report.verdict.declared) << "\n";
  if (fine && report.verdict.compat) out_ << "    " << text::printable(compat_line(report.verdict)) << "\n";
  out_ << std::flush;
}

void Console::summary(const std::vector<ReportCase>& cases, double seconds, const std::string& output_folder) {
  clear_status();
  std::map<Verdict, size_t> counts;
  std::vector<const ReportCase*> failures;
  for (const ReportCase& report : cases) {
    ++counts[report.verdict.verdict];
    const Verdict verdict = report.verdict.verdict;
    if (verdict != Verdict::kSkipped && !passes(verdict, options_.strict)) failures.push_back(&report);
  }
  if (!failures.empty()) out_ << "\nfailures:\n";
  for (const ReportCase* report : failures) {
    out_ << fmt::format("  {} {}: {}\n", to_string(report->verdict.verdict), text::printable(report->name),
                        text::printable(report->verdict.reason));
  }
  std::string line;
  for (const auto& [verdict, count] : counts) line += fmt::format(", {} {}", count, to_string(verdict));
  out_ << fmt::format("\n{} cases in {:.2f} s{}\n", cases.size(), seconds, line);
  const auto other = [](const ReportCase& report) { return report.verdict.compat.has_value(); };
  if (const auto told = std::count_if(cases.begin(), cases.end(), other); told > 0) {
    const auto differ = std::count_if(cases.begin(), cases.end(), [&](const ReportCase& report) {
      return disagrees(report.verdict, options_.strict);
    });
    out_ << fmt::format("megatron's comparator: {} agree, {} disagree\n", told - differ, differ);
  }
  if (!output_folder.empty()) out_ << "results: " << output_folder << "\n";
  out_ << std::flush;
}

}  // namespace assay::report
