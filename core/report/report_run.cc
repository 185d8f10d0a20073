#include "core/report/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <tuple>

namespace assay::report {

Outcome outcome(Verdict verdict, bool strict) {
  if (verdict == Verdict::kSkipped) return Outcome::kSkipped;
  if (passes(verdict, strict)) return Outcome::kPass;
  const bool broken = verdict == Verdict::kInvalid || verdict == Verdict::kCrashed || verdict == Verdict::kInfra;
  return broken ? Outcome::kError : Outcome::kFailure;
}

Totals totals(const std::vector<ReportCase>& cases, bool strict) {
  Totals sum;
  std::map<Verdict, size_t> counts;
  for (const ReportCase& report : cases) {
    const Verdict verdict = report.verdict.verdict;
    ++counts[verdict];
    ++sum.cases;
    if (verdict == Verdict::kSkipped) {
      ++sum.skipped;
    } else {
      ++(fails(verdict, strict) ? sum.failed : sum.passed);
    }
  }
  sum.verdicts.assign(counts.rbegin(), counts.rend());
  return sum;
}

std::vector<const ReportCase*> by_severity(const std::vector<ReportCase>& cases, bool strict) {
  std::vector<const ReportCase*> order;
  order.reserve(cases.size());
  for (const ReportCase& report : cases) order.push_back(&report);
  const auto rank = [strict](const ReportCase* report) {
    const Outcome result = outcome(report->verdict.verdict, strict);
    return result == Outcome::kSkipped ? 2 : result == Outcome::kPass ? 1 : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](const ReportCase* a, const ReportCase* b) {
    using Key = std::tuple<int, int, const std::string&>;
    return Key(rank(a), -static_cast<int>(a->verdict.verdict), a->name) <
           Key(rank(b), -static_cast<int>(b->verdict.verdict), b->name);
  });
  return order;
}

std::vector<std::string> unique_names(const std::vector<ReportCase>& cases) {
  std::set<std::string> used;
  std::map<std::string, size_t> next;  // number to try first, by name
  std::vector<std::string> names;
  names.reserve(cases.size());
  for (const ReportCase& report : cases) {
    std::string candidate = report.name;
    size_t& number = next.emplace(report.name, 2).first->second;
    while (!used.insert(candidate).second) candidate = fmt::format("{} ({})", report.name, number++);
    names.push_back(std::move(candidate));
  }
  return names;
}

std::string incomplete_text(const ReportRun& run) {
  if (run.finished) return {};
  return run.running ? "the run is still going on" : "the runner was killed before the run ended";
}

std::string utc_text(double seconds) {
  if (!(seconds > 0 && seconds < 1e11)) return "";
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&whole, &utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace assay::report
