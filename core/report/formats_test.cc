// TAP, JSON and the step summary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/report/github_summary.h"
#include "core/report/report_json.h"
#include "core/report/sample_run.h"
#include "core/report/tap.h"

namespace assay::report {
namespace {

using testing::HasSubstr;
using testing::Not;

ReportRun mixed() {
  ReportRun run;
  run.cases = {sample::one_case("fine", Verdict::kIdentical),
               sample::one_case("m/bad #1", Verdict::kDiverged, "token 3\nis 7"),
               sample::one_case("no", Verdict::kSkipped, "no GPU"), sample::one_case("known", Verdict::kWaived, "w")};
  run.cases[3].verdict.declared = "until May";
  return run;
}

TEST(Tap, PointsFollowTheRunAndDeclaredFailuresAreTodo) {
  EXPECT_EQ(
      tap_text(mixed()),
      "TAP version 14\n1..4\nok 1 - fine\nnot ok 2 - m/bad \\#1\n  ---\n  verdict: \"DIVERGED\"\n  message: \"token "
      "3\\nis 7\"\n  duration_ms: 0.000\n  ...\nok 3 - no # SKIP no GPU\nnot ok 4 - known # TODO until May\n  ---\n  "
      "verdict: \"WAIVED\"\n  message: \"w\"\n  duration_ms: 0.000\n  ...\n");
}

TEST(Tap, AKilledRunBailsOut) {
  ReportRun run = mixed();
  run.finished = false;
  EXPECT_THAT(tap_text(run), HasSubstr("\nBail out!"));
}

TEST(GithubSummary, FailuresAreCountedAndShown) {
  const std::string text = github_summary(mixed());
  EXPECT_THAT(text, HasSubstr("## assay: 2 passed, 1 failed, 1 skipped"));
  EXPECT_THAT(text, HasSubstr("<b>DIVERGED</b> m/bad #1"));
  EXPECT_THAT(text, HasSubstr("token 3&#92;nis 7"));
}

TEST(GithubSummary, MarkupOfCasesIsText) {
  ReportRun run;
  run.cases = {sample::one_case("`a` *b* [c](d) <e> @f |", Verdict::kDrift, "</details>")};
  const std::string text = github_summary(run);
  EXPECT_THAT(text, HasSubstr("&#96;a&#96; &#42;b&#42; &#91;c&#93;(d) &lt;e&gt; &#64;f &#124;"));
  EXPECT_THAT(text, HasSubstr("&lt;/details&gt;"));
}

TEST(GithubSummary, ThousandsOfFailuresStayBelowTheLimitAndAreCounted) {
  ReportRun run;
  run.cases.assign(5000, sample::one_case("case", Verdict::kDiverged, std::string(3000, '<')));
  for (const size_t limit : {size_t{5000}, size_t{40'000}, kMaxSummaryBytes}) {
    const std::string text = github_summary(run, limit);
    EXPECT_LE(text.size(), limit);
    EXPECT_THAT(text, HasSubstr(" more failed; report.html"));
    EXPECT_THAT(text, Not(HasSubstr("&lt<")));
    size_t opened = 0;
    size_t closed = 0;
    for (size_t at = 0; (at = text.find("<details>", at)) != std::string::npos; ++at) ++opened;
    for (size_t at = 0; (at = text.find("</details>", at)) != std::string::npos; ++at) ++closed;
    EXPECT_EQ(opened, closed);
    EXPECT_THAT(text, HasSubstr(std::to_string(5000 - opened) + " more failed"));
  }
}

TEST(GithubSummary, WhatTheStepWroteBeforeIsKeptAndCounts) {
  const std::string path = testing::TempDir() + "/summary_" + std::to_string(::getpid()) + ".md";
  std::ofstream(path) << std::string(999'500, 'x');
  ASSERT_TRUE(append_github_summary(path, mixed()).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 999'500u);  // no room was left
  std::ofstream(path) << "before\n";
  ASSERT_TRUE(append_github_summary(path, mixed()).ok());
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("before\n## assay"));
  std::filesystem::remove(path);
  EXPECT_EQ(append_github_summary("/nonexistent/summary.md", mixed()).code(), StatusCode::kInfra);
}

TEST(ReportJson, NamesFormatVersionTotalsAndCases) {
  const auto json = nlohmann::json::parse(report_json(mixed()));
  EXPECT_EQ(json["format"], "assay-report");
  EXPECT_EQ(json["version"], kReportSchema);
  EXPECT_EQ(json["totals"]["failed"], 1);
  EXPECT_EQ(json["totals"]["verdicts"]["DIVERGED"], 1);
  EXPECT_EQ(json["cases"][1]["passes"], false);
  EXPECT_TRUE(json["cases"][2]["passes"].is_null());
  EXPECT_EQ(json["cases"][1]["reason"], "token 3\nis 7");
}

}  // namespace
}  // namespace assay::report
