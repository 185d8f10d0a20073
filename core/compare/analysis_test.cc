// Verdicts of cases whose tokens part, with reruns made up for the test.
#include "core/compare/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compare/test_plugins.h"

namespace assay::compare {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kSettled = R"({"0": {"input_prompt": "p", "generated_text": "abcd",
  "generated_tokens": [5, 6, 7, 8], "logprobs": [-1.0, -0.5, -0.5, -0.75, -0.5]}})";
constexpr std::string_view kParted = R"({"0": {"input_prompt": "p", "generated_text": "abxy",
  "generated_tokens": [5, 6, 9, 4], "logprobs": [-1.0, -0.5, -0.5, -0.75, -0.25]}})";

// Says at each golden position what the test wants; the golden's logits are 1.5, so a ULP of bf16 is 2^-7.
class FakeRerun : public Rerun {
 public:
  explicit FakeRerun(std::vector<int32_t> golden) : golden_(std::move(golden)) {
    for (const int32_t token : golden_) {
      RerunPosition position;
      position.top = {{"t", -0.5, token}, {"u", -3.0, 40}};
      position.golden_logprob = -0.5;
      position.golden_logit = 1.5;
      position.golden_rank = 0;
      positions_.push_back(std::move(position));
    }
  }

  // At `index` the engine prefers `token`, by `gap` nats over the golden's.
  FakeRerun& prefers(size_t index, int32_t token, double gap, int64_t rank = 1) {
    RerunPosition& position = positions_[index];
    position.top = {{"x", -0.5, token}, {"g", -0.5 - gap, golden_[index]}};
    position.golden_logprob = -0.5 - gap;
    position.golden_logit = 1.5 - gap;
    position.golden_rank = rank;
    return *this;
  }

  int logits_mantissa() const override { return 8; }
  Result<RerunResult> run(const RerunInput& input) override {
    ++calls;
    RerunRequest request;
    request.id = input.parted.at(0).id;
    request.golden_tokens = golden_;
    request.positions = positions_;
    request.further = further;
    RequestRecord record;
    record.id = request.id;
    record.tokens = golden_;
    record.logprobs = logprobs;
    if (!margins.empty()) {
      record.routing = Routing{.experts = std::vector<uint16_t>(margins.size(), 0),
                               .tokens = margins.size(),
                               .layers = 1,
                               .topk = 1,
                               .positions = {},
                               .margins = margins};
    }
    request.record = std::move(record);
    RerunResult result;
    result.method = "forced";
    result.requests.push_back(std::move(request));
    return result;
  }

  Result<RerunResult> run_own(const RerunInput& input) override {
    if (own.positions.empty()) return unsupported("not asked for by the test");
    own.id = input.parted.at(0).id;
    own.golden_tokens = *input.actual->find(own.id)->tokens;
    RerunResult result;
    result.method = "forced";
    result.requests.push_back(own);
    return result;
  }

  // Fed the judged run's tokens, the engine prefers these.
  FakeRerun& takes(const std::vector<int32_t>& tokens) {
    for (const int32_t token : tokens) own.positions.push_back({{{"t", -0.5, token}}, -0.5, 1.5, 0});
    return *this;
  }

  RerunRequest own;
  int calls = 0;
  uint64_t further = 0;
  std::vector<double> logprobs = {-1.0, -0.5, -0.5, -0.75, -0.5};
  std::vector<float> margins;  // (tokens)

 private:
  std::vector<int32_t> golden_;
  std::vector<RerunPosition> positions_;
};

CaseVerdict judge(std::vector<std::string> metrics, std::string_view golden, std::string_view actual, Rerun* rerun,
                  bool known = false) {
  JudgeOptions options = with_metrics(std::move(metrics));
  options.known.enabled = known;
  const ResultSet reference = results(golden);
  const ResultSet candidate = results(actual);
  JudgeInput input{.options = &options, .golden = &reference, .golden_missing = "", .actual = &candidate};
  input.rerun = rerun;
  return judge_case(input);
}

TEST(Analysis, ANearTieIsEquivalentAndNumbersAreJudgedOverTheWholeGolden) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0.0078125);
  const CaseVerdict verdict = judge({"generated_tokens", "generated_text", "logprobs"}, kSettled, kParted, &rerun);
  EXPECT_EQ(verdict.verdict, Verdict::kEquivalent) << verdict.reason;
  EXPECT_THAT(verdict.reason, HasSubstr("re-anchored 1 request over 4 tokens: 1 near-tie, 0 true splits"));
  EXPECT_THAT(verdict.reason, HasSubstr("0.00781 nats, 1 ULP of bf16"));
  EXPECT_EQ(verdict.metrics[2].findings[0].compared, 5U) << "prompt and every generated token";
  EXPECT_EQ(verdict.metrics[2].verdict, Verdict::kIdentical);
  ASSERT_EQ(verdict.evidence.size(), 1U);
  EXPECT_TRUE(verdict.evidence[0].reanchoring->explains());
  EXPECT_EQ(verdict.evidence[0].first_divergent, 2);
  EXPECT_EQ(verdict.evidence[0].split->result.text, "x");
  EXPECT_EQ(verdict.evidence[0].tokens[3].delta, 0) << "from the rerun, behind the split";
  EXPECT_EQ(rerun.calls, 1);
}

TEST(Analysis, ATieDoesNotExcuseWhatTheJudgedRunDidBehindIt) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0.0078125).takes({5, 6, 9, 4});
  const std::vector<std::string> metrics = {"generated_tokens", "generated_text"};
  EXPECT_EQ(judge(metrics, kSettled, kParted, &rerun).verdict, Verdict::kEquivalent);

  FakeRerun another({5, 6, 7, 8});
  another.prefers(2, 9, 0.0078125).takes({5, 6, 9, 3});
  const CaseVerdict verdict = judge(metrics, kSettled, kParted, &another);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason,
              HasSubstr("took 4 at its generated token 3, but after the same tokens the engine takes 3"));

  FakeRerun early({5, 6, 7, 8});
  early.prefers(2, 9, 0.0078125).takes({5, 6, 9, 4}).own.further = 20;
  EXPECT_EQ(judge(metrics, kSettled, kParted, &early).verdict, Verdict::kDiverged);
}

TEST(Analysis, ATieDoesNotExcuseATextThatItsTokensDoNotGive) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0.0078125).takes({5, 6, 9, 4}).own.record.emplace().text = "abx";
  const CaseVerdict verdict = judge({"generated_tokens", "generated_text"}, kSettled, kParted, &rerun);
  EXPECT_EQ(verdict.metrics[0].verdict, Verdict::kEquivalent) << "METRICS alone judge";
  EXPECT_EQ(verdict.metrics[1].verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("the same tokens give another text"));
}

TEST(Analysis, NumbersBeyondToleranceOnTheGoldensTokensAreDrift) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0.0078125).logprobs[4] = -1.0;
  const CaseVerdict verdict = judge({"generated_tokens", "logprobs"}, kSettled, kParted, &rerun);
  EXPECT_EQ(verdict.verdict, Verdict::kDrift) << verdict.reason;
  EXPECT_THAT(verdict.reason, HasSubstr("logprobs: request 0: re-anchored: max |Δ| 0.5"));
  // METRICS alone judge; the evidence tells it all the same.
  const CaseVerdict tokens = judge({"generated_tokens"}, kSettled, kParted, &rerun);
  EXPECT_EQ(tokens.verdict, Verdict::kEquivalent);
  EXPECT_EQ(tokens.evidence[0].reanchoring->logprobs->over, 1U);
}

TEST(Analysis, AGapBeyondTwoUlpsIsATrueSplit) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0.0235);
  const CaseVerdict verdict = judge({"generated_tokens"}, kSettled, kParted, &rerun);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("0 near-ties, 1 true split; true split at generated token 2: golden 7 \"g\""));
  EXPECT_THAT(verdict.reason, HasSubstr("golden token at place 2"));
}

TEST(Analysis, ALaterTrueSplitIsNotExcusedByATie) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0).prefers(3, 11, 2);
  const CaseVerdict verdict = judge({"generated_tokens"}, kSettled, kParted, &rerun);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("1 near-tie, 1 true split"));
}

TEST(Analysis, ADifferenceThatDoesNotHappenAgainStaysDiverged) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(3, 11, 0);  // a tie elsewhere explains nothing
  const CaseVerdict verdict = judge({"generated_tokens"}, kSettled, kParted, &rerun);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("not reproduced: depends on state or schedule"));
}

TEST(Analysis, AKnownCompletionMustBeExact) {
  const std::string text = "the licence text goes on for more than forty characters";
  const std::string golden =
      R"({"0": {"input_prompt": "p", "generated_text": ")" + text + R"(", "generated_tokens": [5, 6, 7, 8]}})";
  const std::string actual =
      R"({"0": {"input_prompt": "p", "generated_text": "the lizard", "generated_tokens": [5, 6, 9, 4]}})";
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0);
  const CaseVerdict verdict = judge({"generated_text", "generated_tokens"}, golden, actual, &rerun, true);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_EQ(verdict.metrics[1].verdict, Verdict::kEquivalent);
  EXPECT_THAT(verdict.reason, HasSubstr("a known completion must be exact"));
}

TEST(Analysis, AGoldenThatEndsWhereTheEngineGoesOnIsATrueSplit) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0).further = 3;
  EXPECT_EQ(judge({"generated_tokens"}, kSettled, kParted, &rerun).verdict, Verdict::kDiverged);
}

TEST(Analysis, OneAlteredTokenOfTheGoldenIsOneTrueSplit) {
  constexpr std::string_view kResult = R"({"0": {"input_prompt": "p", "generated_tokens": [5, 3, 7, 8]}})";
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(1, 3, 4, 900).prefers(2, 11, 4).prefers(3, 12, 4);  // nobody generated behind a 6
  const CaseVerdict verdict = judge({"generated_tokens"}, kSettled, kResult, &rerun);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  EXPECT_THAT(verdict.reason, HasSubstr("0 near-ties, 1 true split; all tokens behind it agree"));
  EXPECT_THAT(verdict.reason, HasSubstr("true split at generated token 1"));
}

TEST(Analysis, ASplitBehindATieOfExpertsIsDrift) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0.5);
  rerun.margins = {0.5F, 0.001F, 0.5F, 0.5F, 0.5F};  // (2 prompt + 4 generated - 1)
  const CaseVerdict tie = judge({"generated_tokens"}, kSettled, kParted, &rerun);
  EXPECT_EQ(tie.verdict, Verdict::kDrift) << tie.reason;
  EXPECT_THAT(tie.reason, HasSubstr("1 routing tie, 0 true splits"));
  rerun.margins = {0.5F, 0.5F, 0.5F, 0.5F, 0.001F};  // behind the split
  EXPECT_EQ(judge({"generated_tokens"}, kSettled, kParted, &rerun).verdict, Verdict::kDiverged);
  rerun.margins = {0.5F, 0.001F, 0.5F, 0.5F, 0.5F};
  rerun.logprobs = {-3.0, -2.5, -2.5, -2.75, -2.5};  // nothing agrees: no rounding
  EXPECT_EQ(judge({"generated_tokens"}, kSettled, kParted, &rerun).verdict, Verdict::kDiverged);
}

TEST(Analysis, WithoutAnEngineTheEvidenceSaysSo) {
  const CaseVerdict verdict = judge({"generated_tokens"}, kSettled, kParted, nullptr);
  EXPECT_EQ(verdict.verdict, Verdict::kDiverged);
  ASSERT_EQ(verdict.evidence.size(), 1U);
  EXPECT_EQ(verdict.evidence[0].reanchoring->not_done, "no engine to run again");
  EXPECT_EQ(verdict.evidence[0].split->golden.id, 7);
  EXPECT_THAT(verdict.reason, Not(HasSubstr("re-anchored")));
}

TEST(Analysis, TruncationStaysInvalidAndEqualTokensNeedNoRerun) {
  FakeRerun rerun({5, 6, 7, 8});
  rerun.prefers(2, 9, 0);
  constexpr std::string_view kShort = R"({"0": {"input_prompt": "p", "generated_tokens": [5, 6]}})";
  EXPECT_EQ(judge({"generated_tokens"}, kSettled, kShort, &rerun).verdict, Verdict::kInvalid);
  rerun.calls = 0;
  EXPECT_EQ(judge({"generated_tokens"}, kSettled, kSettled, &rerun).verdict, Verdict::kIdentical);
  EXPECT_EQ(rerun.calls, 0);
}

}  // namespace
}  // namespace assay::compare
