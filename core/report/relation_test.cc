// Reports of cases that a relation judged.
#include "core/metamorphic/relation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/report/console.h"
#include "core/report/diagnosis.h"
#include "core/report/html_page.h"
#include "core/report/junit.h"
#include "core/report/report_json.h"
#include "core/report/sample_run.h"
#include "core/report/tap.h"
#include "core/report/wording.h"

namespace assay::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A relation that does not hold, with everything that evidence may have.
ReportCase broken_relation() {
  ReportCase made = sample::one_case("moe/x@prefix_cache", Verdict::kDiverged,
                                     "generated_tokens: request 0: golden 5, result 77 (and 1 more)");
  made.relation = "prefix_cache";
  made.reproduce = "assay run golden/x --filter '*@prefix_cache'";
  made.verdict.golden = "out/cases/moe/x@prefix_cache/reference.json";
  made.verdict.metrics = {sample::metric("generated_tokens", Verdict::kDiverged,
                                         {sample::finding(Verdict::kDiverged, "0", 4, "the golden has \"golden\"")})};
  RequestEvidence one = sample::evidence("0", sample::ids(1, 10), sample::ids(1, 10));
  one.tokens[4].result = TokenView{77, " other", -1.0};
  one.first_divergent = 4;
  one.golden_text = "one golden text";
  one.result_text = "one other text";
  one.split = Split();
  one.split->index = 4;
  one.split->golden = {5, " t5", -1.0};
  one.split->result = {77, " other", -0.5};
  one.split->gap = 0.5;
  one.split->golden_rank = 1;
  one.split->top = {{{77, " other", -0.5}, false, true}, {{5, " t5", -1.0}, true, false}};
  one.reanchoring = sample::again(10, 0, 1, true);
  one.reanchoring->splits = {*one.split};
  made.verdict.evidence = {one};
  word_verdict(&made);
  return made;
}

ReportRun run_of(ReportCase report) {
  ReportRun run;
  run.run_id = "r";
  run.cases = {std::move(report)};
  return run;
}

TEST(Wording, GoldenBecomesReferenceButInQuotesAndNames) {
  const ReportCase report = broken_relation();
  EXPECT_EQ(worded(report, "the golden's token, golden 5. A golden: golden."),
            "the reference's token, reference 5. A reference: reference.");
  EXPECT_EQ(worded(report, "golden has \"a golden \\\" golden\", golden"),
            "reference has \"a golden \\\" golden\", reference");
  for (const char* name :
       {"golden/licences/x.txt", "golden_values_dev.json", "golden.json", "moe/golden", "my-golden", "goldenrod"}) {
    EXPECT_EQ(worded(report, name), name);
  }
  EXPECT_EQ(worded(report, "an open \" quote\na golden"), "an open \" quote\na reference");
  EXPECT_EQ(worded(sample::one_case("x", Verdict::kDrift), "the golden"), "the golden");
}

TEST(RelationReport, PageNamesTheTwoWaysAndNoGolden) {
  const std::string page = html_page(run_of(broken_relation()));
  const metamorphic::RelationInfo& info = metamorphic::info_of(metamorphic::Relation::kPrefixCache);
  for (const std::string_view text : {info.reference, info.changed, info.mechanism}) {
    EXPECT_THAT(page, HasSubstr(std::string(text)));
  }
  EXPECT_THAT(page, HasSubstr("<u>reference</u><s>result</s>"));
  EXPECT_THAT(page, HasSubstr("At token 4 the reference has &quot; t5&quot;"));
  EXPECT_THAT(page, HasSubstr("Likely cause: the prefix cache."));
  EXPECT_THAT(page, HasSubstr("assay run golden/x --filter &#39;*@prefix_cache&#39;"));
  std::string words = page.substr(page.find("<article"));
  for (const char* allowed : {"class=\"golden tag\"", "class=\"golden\"", "golden/x", "one golden text",
                              "&quot;golden&quot;", "one <mark>golden text"}) {
    for (size_t at = words.find(allowed); at != std::string::npos; at = words.find(allowed)) {
      words.erase(at, std::string_view(allowed).size());
    }
  }
  const size_t left = words.find("golden");
  EXPECT_EQ(left, std::string::npos) << words.substr(left > 60 ? left - 60 : 0, 140);
}

TEST(RelationReport, EveryFormatSaysWhichRelationJudged) {
  const ReportRun run = run_of(broken_relation());
  const nlohmann::json json = nlohmann::json::parse(report_json(run));
  EXPECT_EQ(json["cases"][0]["relation"], "prefix_cache");
  EXPECT_THAT(json["cases"][0]["reason"].get<std::string>(), HasSubstr("reference 5, result 77"));
  EXPECT_EQ(flat_case_json(run.cases[0])["relation"], "prefix_cache");
  EXPECT_TRUE(flat_case_json(sample::one_case("x", Verdict::kDrift))["relation"].is_null());
  EXPECT_THAT(junit_xml(run), HasSubstr("name=\"relation\" value=\"prefix_cache\""));
  EXPECT_THAT(junit_xml(run), HasSubstr("name=\"reference\" value=\"out/cases/"));
  EXPECT_THAT(tap_text(run), HasSubstr("  relation: \"prefix_cache\"\n  reference: \"out/cases/"));
  std::ostringstream out;
  Console console(out, {.colour = false, .terminal = false, .strict = false, .quiet = false}, 1);
  console.finished(run.cases[0]);
  EXPECT_THAT(out.str(), HasSubstr("reference: out/cases/moe/x@prefix_cache/reference.json"));
  EXPECT_THAT(out.str(), HasSubstr("again: assay run golden/x"));
  EXPECT_THAT(out.str(), Not(HasSubstr("golden:")));
}

TEST(RelationReport, EveryRelationThatDoesNotHoldHasASuspect) {
  for (const metamorphic::RelationInfo& info : metamorphic::relation_table()) {
    ReportCase report = sample::one_case("x@" + std::string(info.name), Verdict::kDrift, "why");
    report.relation = info.name;
    ASSERT_THAT(diagnose(report), SizeIs(1)) << info.name;
    EXPECT_THAT(diagnose(report)[0].sentence, HasSubstr(std::string(info.changed))) << info.name;
    report.verdict.verdict = Verdict::kIdentical;
    EXPECT_THAT(diagnose(report), SizeIs(0)) << info.name;
  }
}

TEST(RelationReport, WhatIsMissingIsNoMissingGolden) {
  ReportCase report = sample::one_case("x@prefix_cache", Verdict::kNotComparable, "no tokens came from the cache");
  report.relation = "prefix_cache";
  EXPECT_THAT(diagnose(report), SizeIs(0));
  EXPECT_THAT(verdict_meaning(report), HasSubstr("The relation was not shown to hold"));
  report.verdict.verdict = Verdict::kIdentical;
  EXPECT_EQ(verdict_meaning(report), "Every compared value is equal to the reference.");
}

}  // namespace
}  // namespace assay::report
