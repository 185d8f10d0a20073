// What a finished request says, in both forms.
#include "plugins/engines/buffered/buffered_fixture.h"

namespace assay::engines {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Results : public Buffered {
 protected:
  // Counts upwards; `end` after `after` tokens.
  void count_up(size_t after, int32_t end) {
    model_.prefers = [after, end](std::span<const int32_t> sequence) {
      return sequence.size() == after ? end : (sequence.back() + 1) % 60;
    };
  }
  std::string failure(const std::string& options, const std::string& tokenizer = kToyTokenizer) {
    return open_on_toy<BufferedEngine>(&model_, host_, options, tokenizer).status().message();
  }
};

TEST_F(Results, DropTheEodInTheStaticFormAndKeepItInTheDynamicOne) {
  count_up(5, kToyEod);
  open("{}");
  const EngineResult fixed = std::move(run({{.text = "1 2 3"}}).finished.at(0));
  EXPECT_THAT(fixed.tokens, ElementsAre(4, 5));
  EXPECT_EQ(fixed.generated_logprobs.size(), 2U);
  EXPECT_EQ(fixed.tpot.size(), 2U);
  const json counters = json::parse(fixed.extra);
  EXPECT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters["engine_counters"]["steps"], 3);

  open(R"({"results": "dynamic"})");
  const Outcome outcome = run({{.text = "1 2 3", .top_n = 2}});
  const EngineResult& dynamic = outcome.finished.at(0);
  EXPECT_THAT(dynamic.tokens, ElementsAre(4, 5, kToyEod));
  EXPECT_THAT(outcome.streamed.at(0), ElementsAre(4, 5, kToyEod));
  EXPECT_EQ(dynamic.generated_logprobs.size(), 3U) << "the EOD's is among them";
  EXPECT_EQ(dynamic.prompt_logprobs.size(), 2U);
  EXPECT_EQ(dynamic.generated_top_n.counts.size(), 3U);
  EXPECT_THAT(dynamic.tpot, IsEmpty());
  const json extra = json::parse(dynamic.extra);
  EXPECT_EQ(extra["step_count"], 3);
  EXPECT_EQ(extra["cuda_graph_request_count_map"], json::object());
  EXPECT_GT(extra["ttft"], 0.0);
  EXPECT_LT(extra["ttft"], dynamic.latency);
}

TEST_F(Results, StopAtAnotherIdOrAtNone) {
  count_up(5, kToyEod);
  open(R"({"termination_id": -1})");
  EXPECT_EQ(run({{.text = "1 2 3", .max_new_tokens = 5}}).finished.at(0).tokens.size(), 5U);
  open(R"({"termination_id": 4})");
  EXPECT_THAT(run({{.text = "1 2 3"}}).finished.at(0).tokens, IsEmpty());
  EXPECT_THAT(failure(R"({"termination_id": 64})"), HasSubstr("termination_id 64 is outside of the model's"));
}

TEST_F(Results, AreEmptyWhereTheFirstTokenIsAStopWord) {
  count_up(0, 0);
  open(R"({"stop_words": ["4"], "results": "dynamic"})");
  const Outcome outcome = run({{.text = "1 2 3", .top_n = 1}, {.text = "3"}, {.text = "7", .max_new_tokens = 2}});
  for (const uint64_t id : {0, 1}) {
    EXPECT_THAT(outcome.finished.at(id).tokens, IsEmpty());
    EXPECT_THAT(outcome.finished.at(id).generated_logprobs, IsEmpty());
    EXPECT_FALSE(outcome.streamed.contains(id));
  }
  EXPECT_EQ(outcome.finished.at(0).prompt_logprobs.size(), 2U);
  EXPECT_THAT(outcome.finished.at(2).tokens, ElementsAre(8, 9));
  expect_all_blocks_free();
}

TEST_F(Results, NeedNoForwardWhereNothingIsAskedOfThem) {
  open("{}");
  const Outcome outcome = run({{.text = "5", .max_new_tokens = 0}, {.text = "5 6", .max_new_tokens = 0}});
  EXPECT_THAT(outcome.finished.at(0).tokens, IsEmpty());
  EXPECT_EQ(outcome.finished.at(1).prompt_logprobs, logprobs({5, 6}, 1));
  EXPECT_EQ(model_.forwards.size(), 1U) << "that of the second one's prompt";
}

TEST_F(Results, EndAtAStopWordAndDropItWithAllThatBelongsToIt) {
  count_up(0, 0);
  open(R"({"stop_words": ["9 9", "6 7"]})");
  const Outcome outcome =
      run({{.text = "1 2 3", .top_n = 2, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_LOGITS}, {.text = "6 7"}});
  const EngineResult& stopped = outcome.finished.at(0);
  EXPECT_THAT(stopped.tokens, ElementsAre(4, 5));
  EXPECT_EQ(stopped.generated_logprobs.size(), 2U);
  EXPECT_EQ(stopped.generated_top_n.counts.size(), 2U);
  EXPECT_EQ(stopped.generated_logits.size(), 2U);
  EXPECT_EQ(stopped.generated_ranks.size(), 2U);
  EXPECT_EQ(outcome.finished.at(1).tokens.size(), 8U) << "a stop word in the prompt is none";
}

TEST_F(Results, AreNotStoppedWithinForcedTokens) {
  open(R"({"stop_words": ["6 7"]})");
  const Outcome outcome = run({{.text = "1", .forced = {6, 7, 8, kToyEod, 9}, .max_new_tokens = 5}});
  EXPECT_THAT(outcome.finished.at(0).tokens, ElementsAre(6, 7, 8, kToyEod, 9));
}

TEST_F(Results, LeaveOutPromptLogprobsWhereAsked) {
  open(R"({"skip_prompt_logprobs": true})");
  const ToyRequest request{.text = "1 2 3", .max_new_tokens = 3, .top_n = 2};
  const EngineResult result = std::move(run({request}).finished.at(0));
  EXPECT_THAT(result.prompt_logprobs, IsEmpty());
  EXPECT_THAT(result.prompt_top_n.counts, IsEmpty());
  std::vector<int32_t> all = {1, 2, 3};
  all.insert(all.end(), result.tokens.begin(), result.tokens.end());
  EXPECT_EQ(result.generated_logprobs, logprobs(all, 3));
  EXPECT_EQ(result.generated_top_n.counts.size(), 3U);
}

TEST_F(Results, RefuseStopWordsThatTheTokenizerCannotRead) {
  EXPECT_THAT(failure(R"({"stop_words": ["x"]})"), HasSubstr("stop word 'x': NullTokenizer text"));
  EXPECT_THAT(failure(R"({"stop_words": [""]})"), HasSubstr("stop word ''"));
  EXPECT_THAT(failure(R"({"stop_words": ["1"]})", "{}"), HasSubstr("there is no tokenizer"));
}

TEST_F(Results, ScoreAPromptWhenNothingIsToBeGenerated) {
  model_.moe_layers = 1;
  model_.moe_topk = 2;
  open("{}");
  const std::vector<ToyRequest> all = {
      {.text = "1 2 3 4", .max_new_tokens = 0, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_ROUTING},
      {.text = "9", .max_new_tokens = 0},
      {.text = "5 6", .max_new_tokens = 0}};
  const Outcome outcome = run(all);
  ASSERT_EQ(outcome.finished.size(), 3U);
  for (size_t i = 0; i < 3; ++i) expect_plain(outcome.finished.at(i), all[i], 0);
  EXPECT_EQ(outcome.finished.at(0).routing_tokens, 3U);
  EXPECT_EQ(model_.forwards.size(), 1U);
}

TEST_F(Results, ShareTheTimeOfTheForwardsAmongThemselves) {
  open("{}");
  const Outcome outcome = run({{.text = "1 2", .max_new_tokens = 2}, {.text = "3 4", .max_new_tokens = 4}});
  double sum = 0;
  for (const auto& [id, result] : outcome.finished) sum += result.prefill_seconds + result.decode_seconds;
  EXPECT_NEAR(sum, static_cast<double>(model_.now_ns) * 1e-9, 1e-12) << "nothing is counted twice";
  EXPECT_NEAR(outcome.finished.at(0).prefill_seconds, 1e-6, 1e-12) << "the first forward";
}

}  // namespace
}  // namespace assay::engines
