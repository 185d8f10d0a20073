#include "core/report/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace assay::report {
namespace {

using testing::HasSubstr;
using testing::Not;

ReportCase diverged() {
  ReportCase made;
  made.name = "moe/b1";
  made.reproduce = "assay run moe/b1";
  made.verdict = {
      .verdict = Verdict::kDiverged, .reason = "token 3 is 7, expected 9", .golden = "g.json", .metrics = {}};
  Finding finding;
  finding.verdict = Verdict::kDiverged;
  finding.request = "0";
  finding.message = "first divergent token 3";
  made.verdict.metrics.push_back({"generated_tokens", Verdict::kDiverged, {finding}});
  return made;
}

TEST(Console, AFailureShowsReasonFindingsGoldenAndHowToRunItAgain) {
  std::ostringstream out;
  Console console(out, {}, 1);
  console.finished(diverged());
  for (const char* part : {"DIVERGED", "moe/b1", "token 3 is 7, expected 9", "request 0: first divergent token 3",
                           "g.json", "assay run moe/b1"}) {
    EXPECT_THAT(out.str(), HasSubstr(part));
  }
}

TEST(Console, WhatIsDeclaredOfACaseIsShownWhetherItPassesOrNot) {
  for (const Verdict verdict : {Verdict::kWaived, Verdict::kDiverged, Verdict::kIdentical}) {
    std::ostringstream out;
    ReportCase declared = diverged();
    declared.verdict.verdict = verdict;
    declared.verdict.declared = "waiver of kim\x1b";
    Console(out, {}, 1).finished(declared);
    EXPECT_THAT(out.str(), HasSubstr("waiver of kim\\x1b\n")) << to_string(verdict);
  }
}

TEST(Console, PlainOutputHoldsNoEscapesAndNoProgress) {
  std::ostringstream out;
  Console console(out, {}, 1);
  console.progress("loading");
  console.finished(diverged());
  EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(out.str(), Not(HasSubstr("loading")));
}

TEST(Console, ATerminalGetsAStatusLineThatIsClearedBeforeTheNextLine) {
  std::ostringstream out;
  Console console(out, {.terminal = true}, 2);
  console.progress("loading");
  EXPECT_THAT(out.str(), HasSubstr("[0/2] loading"));
  console.finished(diverged());
  EXPECT_THAT(out.str(), HasSubstr("\r\x1b[K"));
}

TEST(Console, ControlCharactersOfNamesAndMessagesAreSpelledOut) {
  std::ostringstream out;
  ReportCase hostile = diverged();
  hostile.name = "new\nline\x1b[31m";
  hostile.verdict.reason = "seen \r\x1b[2J";
  hostile.log_tail = "first\nbell\x07\n";
  Console console(out, {}, 1);
  console.finished(hostile);
  console.summary({hostile}, 1, "out");
  EXPECT_THAT(out.str(), HasSubstr("new\\nline\\x1b[31m"));
  EXPECT_THAT(out.str(), HasSubstr("        first\n        bell\\x07\n"));
  for (const char control : {'\x1b', '\r', '\x07'}) EXPECT_EQ(out.str().find(control), std::string::npos);
}

TEST(Console, TheSummaryCountsVerdictsAndRepeatsFailures) {
  std::ostringstream out;
  ReportCase good;
  good.name = "ok";
  good.verdict.verdict = Verdict::kIdentical;
  Console(out, {}, 2).summary({good, diverged()}, 1.5, "out");
  EXPECT_THAT(out.str(), HasSubstr("2 cases in 1.50 s, 1 IDENTICAL, 1 DIVERGED"));
  EXPECT_THAT(out.str(), HasSubstr("DIVERGED moe/b1: token 3 is 7, expected 9"));
  EXPECT_THAT(out.str(), HasSubstr("results: out"));
}

}  // namespace
}  // namespace assay::report
