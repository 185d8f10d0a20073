#include "core/report/html_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/report/html_case.h"
#include "core/report/html_plot.h"
#include "core/report/html_text.h"

namespace assay::report {
namespace {

constexpr size_t kCasesWithHistory = 60;  // rows of squares: failures first

struct Count {
  size_t cases = 0;
  size_t failed = 0;
};

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string tpot_text(double seconds) { return seconds > 0 ? duration(seconds) : ""; }

std::string row(const std::string& name, double started, const Count& count, double tpot) {
  return fmt::format("<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\n", name,
                     utc_text(started), count.cases, count.failed, tpot_text(tpot));
}

std::string run_table(const ReportRun& run, std::vector<double>& trend) {
  std::string out = "<table><tr><th>run<th>started<th>cases<th>failed<th>median time per token\n";
  for (const HistoryRun& earlier : run.history) {
    Count count;
    std::vector<double> times;
    for (const auto& [name, one] : earlier.cases) {
      ++count.cases;
      count.failed += fails(one.verdict, run.strict) ? 1 : 0;
      if (one.tpot_median > 0) times.push_back(one.tpot_median);
    }
    trend.push_back(median(times));
    const std::string name = earlier.has_page ? fmt::format("<a href=\"../{}/report.html\">{}</a>",
                                                            url_path(earlier.folder), html(earlier.folder))
                                              : html(earlier.folder);
    out += row(name, earlier.started, count, trend.back());
  }
  const Totals sums = totals(run.cases, run.strict);
  std::vector<double> times;
  for (const ReportCase& report : run.cases) {
    if (report.figures.tpot_median > 0) times.push_back(report.figures.tpot_median);
  }
  trend.push_back(median(times));
  return out + row("<b>this run</b>", run.started, {sums.cases, sums.failed}, trend.back()) + "</table>";
}

std::string case_squares(const ReportRun& run) {
  std::string rows;
  size_t shown = 0;
  for (const ReportCase* report : by_severity(run.cases, run.strict)) {
    const std::string squares = history_squares(*report, run);
    if (squares.empty()) continue;
    if (++shown > kCasesWithHistory) break;
    rows += fmt::format("<tr><td>{}<td>{}\n", html(report->name), squares);
  }
  if (rows.empty()) return "";
  return "<table class=\"cases\"><caption>Verdicts, oldest first; a square's letter is the verdict's first</caption>" +
         rows + "</table>";
}

}  // namespace

std::string history_html(const ReportRun& run) {
  std::string notes;
  for (const std::string& note : run.history_notes) notes += fmt::format("<p class=\"note\">{}</p>", html(note));
  if (run.history.empty()) return notes.empty() ? "" : "<h2>Earlier runs</h2>" + notes;
  std::vector<double> trend;
  std::string out = "<h2>Earlier runs</h2>" + run_table(run, trend);
  out += line_plot(
      {{trend, "result"}},
      {.title = "Median time per output token, run by run", .x_axis = "run", .y_axis = "milliseconds", .scale = 1e3});
  return out + case_squares(run) + notes;
}

}  // namespace assay::report
