#include "core/report/html_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/golden/text.h"
#include "core/report/diagnosis.h"
#include "core/report/html_case.h"
#include "core/report/html_history.h"
#include "core/report/html_style.h"
#include "core/report/html_text.h"
#include "core/report/write_file.h"

namespace assay::report {
namespace {

constexpr size_t kPlottedCases = 40;         // whose files are read again
constexpr size_t kIndexedFailures = 50;      // links at the top
constexpr size_t kIndexedReason = 160;       // code points of a reason beside them
constexpr size_t kNamedWaivers = 20;         // unused ones, at the top
constexpr size_t kPassingBytes = 1'000'000;  // of unfolding passing cases; the rest are rows
constexpr size_t kHeadBytes = 1'000'000;     // beyond kMaxPageBytes: of failures without evidence; then rows
constexpr size_t kRowBytes = 2'000'000;      // beyond kMaxPageBytes: where rows end, too

struct Named {
  const ReportCase* report;
  std::string name;
};

std::vector<Named> named_by_severity(const ReportRun& run) {
  const std::vector<std::string> names = unique_names(run.cases);
  std::vector<Named> order;
  for (const ReportCase* report : by_severity(run.cases, run.strict)) {
    order.push_back({report, names[static_cast<size_t>(report - run.cases.data())]});
  }
  return order;
}

std::string title_of(const ReportRun& run, const Totals& sums) {
  if (sums.cases == 0) return "no case ran";
  if (sums.failed > 0) return fmt::format("{} of {} failed", sums.failed, plural(sums.cases, "case"));
  if (sums.passed == 0) return fmt::format("{}, all skipped", plural(sums.cases, "case"));
  return fmt::format("{}{} passed{}", run.finished && !run.cancelled && sums.passed > 1 ? "all " : "",
                     plural(sums.passed, "case"), sums.skipped > 0 ? fmt::format(", {} skipped", sums.skipped) : "");
}

std::string incomplete(const ReportRun& run) {
  std::string out;
  if (run.running) {
    out = fmt::format("The run is still going on: {} running, {} to come.", run.unfinished, run.never_started);
  } else if (!run.finished) {
    out = fmt::format("The runner was killed before the run ended: {} did not finish, {} never started.",
                      plural(run.unfinished, "case"), plural(run.never_started, "case"));
  } else if (run.cancelled) {
    out = "The run was cancelled: cases that did not run are counted as failures.";
  }
  return out.empty() ? "" : fmt::format("<p><span class=\"badge error\">INCOMPLETE</span> {}</p>", out);
}

// Names of the cases that pass without the waiver they declare.
std::string unused_waivers(const std::vector<ReportCase>& cases) {
  std::vector<std::string_view> names;
  for (const ReportCase& report : cases) {
    if (has_unused_waiver(report.verdict)) names.emplace_back(report.name);
  }
  const size_t shown = std::min(names.size(), kNamedWaivers);
  std::string out = fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

std::string head(const ReportRun& run, const Totals& sums) {
  std::string out = fmt::format("<header><h1>{}</h1>", html(title_of(run, sums)));
  out += incomplete(run);
  out += "<div class=\"counts\">";
  for (const auto& [verdict, count] : sums.verdicts) {
    out += fmt::format("<span class=\"badge {}\">{} {}</span>", verdict_class(verdict, run.strict), count,
                       to_string(verdict));
  }
  out += "</div><div class=\"bar\">";
  for (const auto& [verdict, count] : sums.verdicts) {
    out += fmt::format("<i class=\"{}\" style=\"flex:{}\" title=\"{} {}\"></i>", verdict_class(verdict, run.strict),
                       count, count, to_string(verdict));
  }
  out += "</div><dl>";
  const auto row = [&out](const char* name, const std::string& value) {
    if (!value.empty()) out += fmt::format("<dt>{}<dd>{}", name, html(value));
  };
  row("run", run.run_id);
  row("started", utc_text(run.started));
  row("took", duration(run.seconds));
  row("goldens of", run.environment);
  row("judged", run.strict ? "strictly: EQUIVALENT does not pass" : "");
  row("left out by --filter", run.filtered > 0 ? plural(run.filtered, "case") : "");
  row("unused waivers", unused_waivers(run.cases));
  row("results", run.folder);
  row("assay", run.version);
  out += "</dl>";
  if (!run.command.empty()) out += fmt::format("<code class=\"cmd\">{}</code>", html(run.command));
  return out + "</header>";
}

std::string index_of_failures(const std::vector<Named>& order, size_t failed, bool strict) {
  if (failed < 2) return "";
  std::string out = "<table class=\"cases\">";
  for (size_t i = 0; i < std::min(failed, kIndexedFailures); ++i) {
    const ReportCase& report = *order[i].report;
    const std::vector<Diagnosis> causes = diagnose(report);
    const std::string& reason = report.verdict.reason;
    const std::string_view head = text::prefix(reason, kIndexedReason);
    out += fmt::format("<tr><td>{}<td><a href=\"#c{}\">{}</a><td class=\"wide\">{}{}{}\n",
                       verdict_badge(report.verdict.verdict, strict), i, html(order[i].name),
                       causes.empty() ? "" : fmt::format("<b>{}</b><br>", html(causes[0].cause)), html(head),
                       head.size() < reason.size() ? "…" : "");
  }
  out += "</table>";
  if (failed > kIndexedFailures) out += fmt::format("<p class=\"note\">{} more below.</p>", failed - kIndexedFailures);
  return out;
}

// Rows of cases, as long as the page has room for them.
class Rows {
 public:
  Rows(const ReportRun& run, const std::string& page) : run_(run), page_(page) {}
  void add(const Named& one) {
    if (page_.size() + text_.size() < kMaxPageBytes + kRowBytes) {
      text_ += case_row(*one.report, one.name, run_.strict);
    } else {
      ++hidden_;
    }
  }
  std::string table() const {
    std::string out =
        text_.empty() ? "" : "<table class=\"cases\"><tr><th>verdict<th>case<th>figures<th>time\n" + text_ + "</table>";
    if (hidden_ > 0) out += fmt::format("<p class=\"note\">The page is full: {} more, see report.json.</p>", hidden_);
    return out;
  }

 private:
  const ReportRun& run_;
  const std::string& page_;
  std::string text_;
  size_t hidden_ = 0;
};

}  // namespace

std::string html_page(const ReportRun& run) {
  const Totals sums = totals(run.cases, run.strict);
  const std::vector<Named> order = named_by_severity(run);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>assay: {}</title><style>{}</style></head>\n<body>",
      html(title_of(run, sums)), kPageStyle);
  out += head(run, sums) + "<main>";
  size_t at = 0;
  if (sums.failed > 0) {
    out += fmt::format("<h2>Failures</h2>{}", index_of_failures(order, sums.failed, run.strict));
    for (; at < sums.failed && out.size() < kMaxPageBytes + kHeadBytes; ++at) {
      out += case_article(*order[at].report, {.run = &run,
                                              .id = fmt::format("c{}", at),
                                              .name = order[at].name,
                                              .evidence = out.size() < kMaxPageBytes,
                                              .curves = at < kPlottedCases}) +
             "\n";
    }
    Rows further(run, out);
    for (; at < sums.failed; ++at) further.add(order[at]);
    out += further.table();
  }
  std::string unfolding;
  Rows rows(run, out);
  const size_t first_passing = at;
  for (; at < sums.failed + sums.passed; ++at) {
    const ReportCase& report = *order[at].report;
    const bool telling = report.verdict.verdict != Verdict::kIdentical || sums.cases <= kPlottedCases;
    if (telling && unfolding.size() < kPassingBytes && out.size() < kMaxPageBytes) {
      unfolding +=
          fmt::format("<details><summary>{} {} <span class=\"soft\">{}</span></summary>{}</details>\n",
                      verdict_badge(report.verdict.verdict, run.strict), html(order[at].name), duration(report.seconds),
                      case_article(report, {.run = &run,
                                            .id = fmt::format("c{}", at),
                                            .name = order[at].name,
                                            .evidence = true,
                                            .curves = at - first_passing < kPlottedCases}));
    } else {
      rows.add(order[at]);
    }
  }
  if (sums.passed > 0) out += "<h2>Passing</h2>" + unfolding + rows.table();
  Rows skipped(run, out);
  for (; at < order.size(); ++at) skipped.add(order[at]);
  if (sums.skipped > 0) out += "<h2>Skipped</h2>" + skipped.table();
  out += history_html(run);
  return out +
         "</main><footer>Made by assay from results.jsonl; <code>assay report</code> makes it "
         "again.</footer></body></html>\n";
}

Status write_html(const std::string& path, const ReportRun& run) {
  return write_report(path, html_page(run), "HTML page");
}

}  // namespace assay::report
