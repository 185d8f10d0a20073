// How batches are cut, advanced and ended.
#include "plugins/engines/static_legacy/static_fixture.h"

namespace assay::engines {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using Lockstep = StaticLegacy;

TEST_F(Lockstep, CountsWhatHappenedToARequest) {
  open(R"({"max_requests": 2})");
  const Outcome outcome = run({{.text = "1 2", .max_new_tokens = 3},
                               {.text = "3 4 5 6", .max_new_tokens = 3},
                               {.text = "7", .max_new_tokens = 1}});
  const nlohmann::json extra = nlohmann::json::parse(outcome.finished.at(1).extra);
  EXPECT_EQ(extra, (nlohmann::json{{"engine_counters",
                                    {{"batch", 2},
                                     {"steps", 5},
                                     {"chunks", 3},
                                     {"cached_tokens", 0},
                                     {"recomputed_tokens", 0},
                                     {"preemptions", 0}}}}))
      << "two tokens of its prompt with the shorter one's, then one and one";
  EXPECT_EQ(counter(outcome.finished.at(0), "steps"), 3);
  EXPECT_EQ(counter(outcome.finished.at(0), "chunks"), 1);
  EXPECT_EQ(counter(outcome.finished.at(2), "batch"), 1) << "a batch of its own";
  EXPECT_EQ(counter(outcome.finished.at(2), "steps"), 6);
}

TEST_F(Lockstep, PrefillsAPromptOnceAndThenOneTokenAtATime) {
  open(R"({"max_requests": 1})");
  const ToyRequest request{.text = "5 6 7 8", .max_new_tokens = 3};
  const Outcome outcome = run({request});
  expect_plain(outcome.finished.at(0), request, 3);
  ASSERT_EQ(model_.forwards.size(), 3U);
  EXPECT_THAT(model_.forwards[0].starts, ElementsAre(0));
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(4));
  EXPECT_THAT(model_.forwards[2].starts, ElementsAre(5));
  EXPECT_THAT(model_.forwards[2].counts, ElementsAre(1));
}

TEST_F(Lockstep, ForcesTheTokensOfLongerPromptsOneByOne) {
  open(R"({"max_requests": 3, "block_size": 4})");
  const std::vector<ToyRequest> requests = {{.text = "5 6 7 8 9 10", .max_new_tokens = 4},
                                            {.text = "11 12", .max_new_tokens = 4},
                                            {.text = "13 14 15 16", .max_new_tokens = 4}};
  const Outcome outcome = run(requests);
  for (size_t i = 0; i < 3; ++i) expect_plain(outcome.finished.at(i), requests[i], 4);
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(2, 2, 2)) << "min P tokens of every prompt";
  EXPECT_THAT(model_.forwards[1].starts, ElementsAre(2, 2, 2));
  EXPECT_THAT(model_.forwards[1].counts, ElementsAre(1, 1, 1));
  EXPECT_EQ(model_.forwards.size(), 8U) << "1 + (max P - min P) + N - 1";
  EXPECT_THAT(model_.forwards[7].starts, ElementsAre(8)) << "rows with N tokens have left";
}

TEST_F(Lockstep, StopsARowAtItsEodAndLeavesItOut) {
  model_.prefers = [](std::span<const int32_t> sequence) {
    return sequence[0] == 5 && sequence.size() == 4 ? kToyEod : -1;
  };
  open(R"({"max_requests": 2})");
  const std::vector<ToyRequest> requests = {{.text = "5 6", .top_n = 2}, {.text = "7 8", .top_n = 2}};
  const Outcome outcome = run(requests);
  const EngineResult& cut = outcome.finished.at(0);
  EXPECT_EQ(cut.tokens.size(), 2U);
  expect_plain(cut, requests[0], 8);
  expect_plain(outcome.finished.at(1), requests[1], 8);
  EXPECT_EQ(cut.generated_top_n.counts.size(), 2U);
  EXPECT_EQ(outcome.streamed.at(0), cut.tokens) << "the EOD is no token event";
}

TEST_F(Lockstep, GivesAnEmptyResultWhenTheFirstTokenIsTheEod) {
  model_.prefers = [](std::span<const int32_t>) { return kToyEod; };
  open("{}");
  const Outcome outcome = run({{.text = "5 6 7", .top_n = 3, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_ROUTING}});
  const EngineResult& result = outcome.finished.at(0);
  EXPECT_THAT(result.tokens, IsEmpty());
  EXPECT_THAT(result.generated_logprobs, IsEmpty());
  EXPECT_EQ(result.prompt_logprobs.size(), 2U);
  EXPECT_THAT(result.generated_top_n.counts, IsEmpty());
  EXPECT_THAT(result.tpot, IsEmpty());
  EXPECT_EQ(result.text, "");
}

TEST_F(Lockstep, CutsRequestsIntoConsecutiveGroupsWithoutRefill) {
  model_.prefers = [](std::span<const int32_t> sequence) { return sequence[0] == 5 ? kToyEod : -1; };
  open(R"({"max_requests": 3})");
  const Outcome outcome =
      run({{.text = "1 2"}, {.text = "5 2"}, {.text = "3 2"}, {.text = "4 2", .max_new_tokens = 2}});
  EXPECT_THAT(outcome.order, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(outcome.finished.size(), 4U);
  EXPECT_EQ(model_.forwards[0].counts.size(), 3U);
  EXPECT_EQ(model_.forwards[1].counts.size(), 2U) << "nobody takes the place of the row that ended";
  EXPECT_EQ(model_.forwards[8].counts.size(), 1U) << "the fourth runs alone";
}

TEST_F(Lockstep, TakesLengthAndSamplingFromTheFirstRequestButWishesFromEach) {
  open(R"({"max_requests": 3})");
  std::vector<ToyRequest> requests = {{.text = "1 2", .max_new_tokens = 3},
                                      {.text = "3 4", .max_new_tokens = 7, .top_n = 2, .want = 0},
                                      {.text = "5 6", .max_new_tokens = 1, .want = 0}};
  requests[1].sampling.top_k = 0;
  requests[1].sampling.seed = 99;
  const Outcome outcome = run(requests);
  for (uint64_t id : {0, 1, 2}) {
    EXPECT_EQ(outcome.finished.at(id).tokens, continuation(ids_of(requests[id].text), 3)) << id;
  }
  EXPECT_EQ(outcome.finished.at(0).generated_logprobs.size(), 3U);
  EXPECT_THAT(outcome.finished.at(1).generated_logprobs, IsEmpty());
  EXPECT_EQ(outcome.finished.at(1).generated_top_n.counts.size(), 3U);
  EXPECT_THAT(outcome.finished.at(2).generated_top_n.counts, IsEmpty());
}

TEST_F(Lockstep, AsksTheModelOnlyForTheRowsThatSomebodyNeeds) {
  open(R"({"max_requests": 2})");
  run({{.text = "1 2 3", .max_new_tokens = 2, .want = 0}, {.text = "4 5 6 7", .max_new_tokens = 2}});
  EXPECT_THAT(model_.forwards[0].output_rows, ElementsAre(1, 3));
  model_.forwards.clear();
  ASSERT_TRUE(engine_->reset().ok());
  run({{.text = "1 2 3", .max_new_tokens = 2, .want = 0}, {.text = "4 5 6 7", .max_new_tokens = 2, .want = 0}});
  EXPECT_THAT(model_.forwards[0].output_rows, ElementsAre(1, 0)) << "no token follows the third of four";
}

TEST_F(Lockstep, ScoresAPromptWhenNothingIsToBeGenerated) {
  model_.moe_layers = 1;
  model_.moe_topk = 2;
  open(R"({"max_requests": 3})");
  const std::vector<ToyRequest> requests = {
      {.text = "1 2 3 4", .max_new_tokens = 0, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_ROUTING},
      {.text = "9", .max_new_tokens = 0},
      {.text = "5 6", .max_new_tokens = 0}};
  const Outcome outcome = run(requests);
  ASSERT_EQ(outcome.finished.size(), 3U);
  for (size_t i = 0; i < 3; ++i) expect_plain(outcome.finished.at(i), requests[i], 0);
  EXPECT_EQ(outcome.finished.at(0).routing_tokens, 3U);
  EXPECT_EQ(model_.forwards.size(), 1U);
}

TEST_F(Lockstep, ARequestThatIsTooLongByItselfLeavesItsBatchAlone) {
  open(R"({"max_requests": 2, "max_sequence_length": 10})");
  const Outcome outcome = run({{.text = "1 2 3", .max_new_tokens = 8}, {.text = "4 5", .max_new_tokens = 8}});
  ASSERT_EQ(outcome.failed.size(), 1U);
  EXPECT_EQ(outcome.failed.at(0).code(), StatusCode::kExhausted);
  EXPECT_EQ(outcome.finished.at(1).tokens, continuation({4, 5}, 8));
}

TEST_F(Lockstep, FailsABatchThatIsTooLongAndRunsTheNext) {
  open(R"({"max_requests": 2, "max_sequence_length": 10})");
  const Outcome outcome = run({{.text = "4 5", .max_new_tokens = 8},
                               {.text = "1 2 3", .max_new_tokens = 7},
                               {.text = "6 7", .max_new_tokens = 8}});
  ASSERT_EQ(outcome.failed.size(), 2U);
  for (uint64_t id : {0, 1}) {
    EXPECT_EQ(outcome.failed.at(id).code(), StatusCode::kExhausted);
    EXPECT_THAT(outcome.failed.at(id).message(),
                HasSubstr("longest prompt of the batch 3 + 8 new tokens = 11 is over the limit of 10"));
  }
  EXPECT_EQ(outcome.finished.at(2).tokens, continuation({6, 7}, 8)) << "2 + 8 tokens just fit";
}

TEST_F(Lockstep, KeepsToThePositionsThatTheModelHas) {
  model_.max_positions = 6;
  open("{}");
  EXPECT_EQ(run({{.text = "1 2 3", .max_new_tokens = 4}}).finished.size(), 1U) << "the last token is not fed back";
  ASSERT_TRUE(engine_->reset().ok());
  EXPECT_THAT(run({{.text = "1 2 3", .max_new_tokens = 5}}).failed.at(0).message(),
              HasSubstr("needs 7 positions, the model has 6"));
}

TEST_F(Lockstep, FailsARequestThatCannotRunAndKeepsItsPlace) {
  open(R"({"max_requests": 2, "max_sequence_length": 16})");
  std::vector<ToyRequest> requests(9, {.text = "1 2"});
  requests[0].text = "";
  requests[1].text = "3 x";
  requests[2].ids = {1, 64};
  requests[3].text = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
  requests[4].top_n = 65;
  requests[5].max_new_tokens = -1;
  requests[6].forced = {1, -1};
  requests[7].text = std::string("\xff");
  const Outcome outcome = run(requests);
  ASSERT_EQ(outcome.failed.size(), 8U);
  EXPECT_THAT(outcome.failed.at(0).message(), HasSubstr("prompt"));
  EXPECT_THAT(outcome.failed.at(1).message(), HasSubstr("prompt: NullTokenizer text: 'x'"));
  EXPECT_THAT(outcome.failed.at(2).message(), HasSubstr("prompt token 1 is id 64, the model's vocabulary is 0 .. 63"));
  EXPECT_THAT(outcome.failed.at(3).message(), HasSubstr("prompt of 17 tokens is longer than the limit of 16"));
  EXPECT_THAT(outcome.failed.at(4).message(), HasSubstr("top_n is 65"));
  EXPECT_THAT(outcome.failed.at(5).message(), HasSubstr("max_new_tokens is -1"));
  EXPECT_THAT(outcome.failed.at(6).message(), HasSubstr("forced token 1 is id -1"));
  EXPECT_THAT(outcome.failed.at(7).message(), HasSubstr("UTF-8"));
  EXPECT_EQ(outcome.finished.at(8).tokens, continuation({1, 2}, 8));
  EXPECT_THAT(outcome.order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(Lockstep, RefusesSamplingThatNoRuleCovers) {
  open("{}");
  std::vector<ToyRequest> requests(6, {.text = "1 2"});
  requests[0].sampling.temperature = 0;
  requests[1].sampling.top_k = -1;
  requests[2].sampling.top_k = 65;
  requests[3].sampling = {.temperature = 1, .top_k = 0, .reserved = 0, .top_p = 1.5, .seed = 0, .prompt_index = 0};
  requests[4].sampling = {.temperature = 1, .top_k = 2, .reserved = 0, .top_p = 0.5, .seed = 0, .prompt_index = 0};
  requests[5].sampling.temperature = std::nan("");
  const Outcome outcome = run(requests);
  EXPECT_EQ(outcome.failed.size(), 6U);
  EXPECT_THAT(outcome.failed, Contains(Pair(4, testing::Property(&Status::message, HasSubstr("only one of them")))));
}

}  // namespace
}  // namespace assay::engines
