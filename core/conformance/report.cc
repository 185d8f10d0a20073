#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/conformance/kit.h"

namespace assay::conformance {
namespace {

std::string_view word(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "FAILED";
    case Outcome::kNotChecked:
      return "not checked";
  }
  return "";
}

size_t count(const KitReport& report, Outcome outcome) {
  return static_cast<size_t>(std::count_if(report.results.begin(), report.results.end(),
                                           [outcome](const CheckResult& one) { return one.outcome == outcome; }));
}

}  // namespace

std::string to_text(const KitReport& report) {
  std::string text = report.kind.empty() ? report.file.string() + "\n"
                                         : fmt::format("{} {} {} (ABI {}): {}\n", report.kind, report.name,
                                                       report.version, report.abi, report.file.string());
  for (const CheckResult& one : report.results) {
    const std::string said =
        one.outcome == Outcome::kPassed ? fmt::format("{} expectations", one.expectations) : one.message;
    text += fmt::format("  {:<11}  {}: {}\n", word(one.outcome), one.check, said);
  }
  return text + fmt::format("{} passed, {} failed, {} not checked\n", count(report, Outcome::kPassed),
                            count(report, Outcome::kFailed), count(report, Outcome::kNotChecked));
}

std::string to_json(const KitReport& report) {
  using Json = nlohmann::ordered_json;
  Json checks = Json::array();
  for (const CheckResult& one : report.results) {
    checks.push_back(Json{{"check", one.check},
                          {"outcome", one.outcome == Outcome::kNotChecked ? "not_checked"
                                      : one.outcome == Outcome::kPassed   ? "passed"
                                                                          : "failed"},
                          {"message", one.message},
                          {"expectations", one.expectations}});
  }
  return Json{{"file", report.file.string()},
              {"kind", report.kind},
              {"name", report.name},
              {"version", report.version},
              {"abi", report.abi},
              {"passed", report.passed()},
              {"checks", checks}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace assay::conformance
