// The core's part, with comparators made for the test.
#include "core/compare/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "assay/sdk.hpp"
#include "core/compare/emit.h"
#include "core/compare/reason.h"
#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTwo = R"({"0": {"generated_text": "a"}, "1": {"generated_text": "b"}})";

template <int32_t (*Judge)(const assay_judgement*, const assay_sink*, assay_error*)>
JudgeOptions judged_by() {
  static const assay_comparator_table table = {sizeof(assay_comparator_table), 0, Judge, nullptr, 0};
  JudgeOptions options;
  options.metrics = {"m"};
  options.lookup = [](std::string_view metric) -> Result<const assay_comparator_table*> {
    if (metric == "m") return &table;
    return not_found("none here");
  };
  return options;
}

int32_t silent(const assay_judgement*, const assay_sink*, assay_error*) { return ASSAY_OK; }

int32_t first_only(const assay_judgement* judgement, const assay_sink* sink, assay_error*) {
  emit(*sink, {.kind = ASSAY_FINDING_EQUAL, .id = judgement->pairs[0].id, .compared = 1});
  return ASSAY_OK;
}

int32_t nothing_compared(const assay_judgement* judgement, const assay_sink* sink, assay_error*) {
  for (size_t i = 0; i < judgement->pair_count; ++i) {
    emit(*sink, {.kind = ASSAY_FINDING_EQUAL, .id = judgement->pairs[i].id});
  }
  return ASSAY_OK;
}

int32_t notes_only(const assay_judgement* judgement, const assay_sink* sink, assay_error*) {
  for (size_t i = 0; i < judgement->pair_count; ++i) {
    emit(*sink, {.kind = ASSAY_FINDING_NOTE, .id = judgement->pairs[i].id, .compared = 5});
  }
  return ASSAY_OK;
}

int32_t throws(const assay_judgement*, const assay_sink*, assay_error*) { throw std::runtime_error("boom"); }

int32_t fails(const assay_judgement*, const assay_sink*, assay_error* error) {
  return sdk::report(unsupported("cannot today"), error);
}

int32_t unknown_kind(const assay_judgement*, const assay_sink* sink, assay_error*) {
  emit(*sink, {.kind = 77, .compared = 1});
  return ASSAY_OK;
}

int32_t every_kind(const assay_judgement* judgement, const assay_sink* sink, assay_error*) {
  const std::string_view options = sdk::text(judgement->options);
  const int kind = options[options.find("tolerance\":") + 11] - '0';
  emit(*sink, {.kind = static_cast<uint32_t>(kind), .compared = 2, .message = "two\nlines"});
  return ASSAY_OK;
}

TEST(JudgeCase, AComparatorThatSaysNothingDoesNotPass) {
  const CaseVerdict verdict = judge_json(judged_by<silent>(), kTwo, kTwo);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("m: request 0: comparator m did not judge this request (and 1 more)"));
}

TEST(JudgeCase, ARequestThatNobodyJudgedDoesNotPass) {
  const CaseVerdict verdict = judge_json(judged_by<first_only>(), kTwo, kTwo);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("request 1"));
}

TEST(JudgeCase, ZeroComparedValuesDoNotPass) {
  const CaseVerdict verdict = judge_json(judged_by<nothing_compared>(), kTwo, kTwo);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("compared no value"));
}

TEST(JudgeCase, NotesDoNotJudge) {
  EXPECT_EQ(judge_json(judged_by<notes_only>(), kTwo, kTwo).verdict, Verdict::kNotComparable);
}

TEST(JudgeCase, AFailingComparatorIsInvalidAndNamed) {
  const CaseVerdict thrown = judge_json(judged_by<throws>(), kTwo, kTwo);
  EXPECT_EQ(thrown.verdict, Verdict::kInvalid);
  EXPECT_THAT(thrown.reason, HasSubstr("comparator m failed: it threw an exception across the plugin border: boom"));
  const CaseVerdict failed = judge_json(judged_by<fails>(), kTwo, kTwo);
  EXPECT_EQ(failed.verdict, Verdict::kInvalid);
  EXPECT_THAT(failed.reason, HasSubstr("comparator m failed: cannot today"));
  EXPECT_THAT(judge_json(judged_by<unknown_kind>(), kTwo, kTwo).reason, HasSubstr("unknown kind 77"));
}

TEST(JudgeCase, FindingsBecomeVerdictsHereAlone) {
  const Verdict expected[] = {Verdict::kIdentical, Verdict::kEquivalent, Verdict::kDrift,
                              Verdict::kDiverged,  Verdict::kInvalid,    Verdict::kNotComparable};
  for (int kind = 1; kind <= 6; ++kind) {
    JudgeOptions options = judged_by<every_kind>();
    options.tolerances["m"] = kind;
    const CaseVerdict verdict = judge_json(options, kTwo, kTwo);
    EXPECT_EQ(verdict.verdict, expected[kind - 1]) << kind;
    EXPECT_EQ(verdict.metrics.back().findings[0].message, "two\\nlines");
  }
}

TEST(JudgeCase, EmptyMetricsAndMissingGoldensAreNotComparable) {
  const ResultSet set = results(kTwo);
  JudgeOptions options = judged_by<silent>();
  options.metrics.clear();
  const CaseVerdict empty = judge_case({.options = &options, .golden = &set, .golden_missing = "", .actual = &set});
  EXPECT_EQ(empty.verdict, Verdict::kNotComparable);
  EXPECT_THAT(empty.reason, HasSubstr("METRICS"));
  options.metrics = {"m"};
  const CaseVerdict none =
      judge_case({.options = &options, .golden = nullptr, .golden_missing = "no file here", .actual = &set});
  EXPECT_EQ(none.verdict, Verdict::kNotComparable);
  EXPECT_EQ(none.reason, "no file here");
}

TEST(JudgeCase, ATypoInMetricsIsNotComparable) {
  JudgeOptions options = judged_by<nothing_compared>();
  options.metrics = {"generated_tokenz"};
  const CaseVerdict verdict = judge_json(options, kTwo, kTwo);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_THAT(verdict.reason, HasSubstr("no comparator plugin for metric \"generated_tokenz\": none here"));
}

TEST(JudgeCase, AMetricThatTheEngineCannotSupplyIsNotComparable) {
  JudgeOptions options = with_metrics({"generated_text", "logprobs"});
  options.capabilities = ASSAY_CAP_TEXT;
  const CaseVerdict verdict = judge_json(options, kTwo, kTwo);
  EXPECT_EQ(verdict.verdict, Verdict::kNotComparable);
  EXPECT_EQ(verdict.metrics[0].verdict, Verdict::kIdentical);
  EXPECT_THAT(verdict.reason, HasSubstr("logprobs: the engine cannot supply logprobs"));
}

TEST(JudgeCase, TolerancesMustBeNumbersAndUnusedOnesAreNoted) {
  JudgeOptions options = judged_by<every_kind>();
  options.tolerances["m"] = -1;
  EXPECT_EQ(judge_json(options, kTwo, kTwo).verdict, Verdict::kInvalid);
  options.tolerances = {{"m", 1}, {"logprob", 0.5}};
  const CaseVerdict verdict = judge_json(options, kTwo, kTwo);
  EXPECT_EQ(verdict.verdict, Verdict::kIdentical);
  EXPECT_EQ(verdict.metrics[0].metric, kRequestsMetric);
  EXPECT_TRUE(verdict.metrics[0].findings[0].note);
  EXPECT_THAT(verdict.metrics[0].findings[0].message, HasSubstr("\"logprob\""));
}

TEST(CompareFiles, UnreadableFilesAreVerdicts) {
  const JudgeOptions options = judged_by<silent>();
  const CaseVerdict missing = compare_files("/nowhere/golden.json", "/nowhere/actual.json", options);
  EXPECT_EQ(missing.verdict, Verdict::kNotComparable);
  EXPECT_THAT(missing.reason, HasSubstr("/nowhere/golden.json: no such file"));
  EXPECT_EQ(compare_files(testing::TempDir(), "x", options).verdict, Verdict::kInvalid);
}

TEST(Reason, IsOnePrintableLineWhateverAMetricIsCalled) {
  Finding finding;
  finding.verdict = Verdict::kNotComparable;
  finding.request = "0\r1";
  finding.message = "nobody judges a\nIDENTICAL";
  CaseVerdict verdict;
  verdict.verdict = Verdict::kNotComparable;
  verdict.metrics = {{"a\nIDENTICAL\x1b[2J", Verdict::kNotComparable, {finding}}};
  EXPECT_EQ(reason_of(verdict), R"(a\nIDENTICAL\x1b[2J: request 0\r1: nobody judges a\nIDENTICAL)");
  verdict.verdict = verdict.metrics[0].verdict = Verdict::kIdentical;
  EXPECT_EQ(reason_of(verdict).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace assay::compare
