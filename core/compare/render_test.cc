#include "core/compare/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::compare {
namespace {

using testing::HasSubstr;
using testing::Not;

CaseVerdict sample() {
  Finding equal;
  equal.verdict = Verdict::kIdentical;
  equal.request = "0";
  equal.compared = 24;
  equal.message = "24 tokens equal";
  Finding beyond;
  beyond.verdict = Verdict::kDrift;
  beyond.request = "1";
  beyond.index = 57;
  beyond.compared = 76;
  beyond.differing = 3;
  beyond.max_abs_difference = 0.1 + 0.2;
  beyond.smallest_passing_tolerance = 0.1 + 0.2;
  beyond.message = "max \"quoted\" caf\u00e9";
  Finding note;
  note.verdict = Verdict::kIdentical;
  note.note = true;
  note.message = "something else";
  CaseVerdict verdict;
  verdict.verdict = Verdict::kDrift;
  verdict.reason = "logprobs: request 1: far";
  verdict.golden = "golden_values_dev_any.json";
  verdict.metrics = {{"generated_tokens", Verdict::kIdentical, {equal}}, {"logprobs", Verdict::kDrift, {beyond, note}}};
  return verdict;
}

TEST(RenderText, ShowsFailuresAndNotesAndSumsUpTheRest) {
  const std::string text = render_verdict_text(sample());
  EXPECT_THAT(text, HasSubstr("DRIFT: logprobs: request 1: far\ngolden: golden_values_dev_any.json\n"));
  EXPECT_THAT(text, HasSubstr("generated_tokens   IDENTICAL  24 values of 1 request equal\n"));
  EXPECT_THAT(text, HasSubstr("    DRIFT: request 1: max \"quoted\" caf\u00e9\n    note: something else\n"));
  EXPECT_THAT(text, Not(HasSubstr("24 tokens equal")));
  EXPECT_THAT(render_verdict_text(sample(), true), HasSubstr("    IDENTICAL: request 0: 24 tokens equal\n"));
}

TEST(VerdictJson, GoesThereAndBack) {
  const std::string json = verdict_json(sample());
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const Result<CaseVerdict> back = parse_verdict_json(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(verdict_json(*back), json);
  EXPECT_EQ(back->metrics[1].findings[0].max_abs_difference, 0.1 + 0.2);
  EXPECT_EQ(back->metrics[1].findings[0].index, 57);
  EXPECT_TRUE(back->metrics[1].findings[1].note);
}

TEST(VerdictJson, BadTextIsRefused) {
  EXPECT_EQ(parse_verdict_json("{").status().code(), StatusCode::kInvalid);
  EXPECT_THAT(parse_verdict_json(R"({"verdict": "FINE"})").status().message(), HasSubstr("FINE"));
  EXPECT_FALSE(parse_verdict_json(R"({"verdict": "IDENTICAL"})").ok());
}

TEST(Render, TextNamesTheDeclarationAndTheEnvironment) {
  CaseVerdict verdict{Verdict::kWaived, "logprobs: x", "g", {}};
  verdict.judged = Verdict::kDrift;
  verdict.declared = "waived: ties";
  verdict.environment = {"device: golden a, result b"};
  EXPECT_EQ(
      render_verdict_text(verdict),
      "WAIVED: logprobs: x\ngolden: g\ndeclared: judged DRIFT, waived: ties\nenvironment: device: golden a, result "
      "b\n");
}

}  // namespace
}  // namespace assay::compare
