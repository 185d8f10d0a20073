// What a result holds.
#include <cmath>

#include "plugins/engines/static_legacy/static_fixture.h"

namespace assay::engines {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using StaticResult = StaticLegacy;

TEST_F(StaticResult, HoldsTopNOfPromptAndGeneratedPositions) {
  open(R"({"max_requests": 2})");
  const Outcome outcome = run({{.text = "1 2 3 4", .max_new_tokens = 3, .top_n = 5},
                               {.text = "5 6", .max_new_tokens = 3, .top_n = 1, .want = 0}});
  const EngineResult& result = outcome.finished.at(0);
  EXPECT_THAT(result.prompt_top_n.counts, ElementsAre(5, 5, 5));
  EXPECT_THAT(result.generated_top_n.counts, ElementsAre(5, 5, 5));
  std::vector<int32_t> sequence = {1};
  for (size_t position = 0; position < 3; ++position) {
    const size_t first = position * 5;
    EXPECT_EQ(result.prompt_top_n.ids[first], toy_argmax(model_, sequence));
    EXPECT_EQ(result.prompt_top_n.logprobs[first],
              static_cast<float>(toy_logprob(model_, sequence, result.prompt_top_n.ids[first])));
    EXPECT_GE(result.prompt_top_n.logprobs[first], result.prompt_top_n.logprobs[first + 1]);
    sequence.push_back(static_cast<int32_t>(position) + 2);
  }
  for (size_t g = 0; g < 3; ++g) {
    EXPECT_EQ(result.generated_top_n.ids[g * 5], result.tokens[g]) << "greedy takes the first candidate";
    EXPECT_EQ(result.generated_top_n.logprobs[g * 5], result.generated_logprobs[g]);
    EXPECT_EQ(result.generated_top_n.texts[g * 5], std::to_string(result.tokens[g]));
  }
  EXPECT_THAT(outcome.finished.at(1).prompt_top_n.counts, ElementsAre(1));
  EXPECT_THAT(outcome.finished.at(1).generated_logprobs, IsEmpty());
}

TEST_F(StaticResult, PutsThePrefillIntoTheFirstTpotAndThenOneForwardEach) {
  open(R"({"max_requests": 2})");  // forward k takes k + 1 microseconds
  const Outcome outcome = run({{.text = "1 2", .max_new_tokens = 3}, {.text = "3 4 5 6", .max_new_tokens = 3}});
  EXPECT_THAT(outcome.finished.at(0).tpot, ElementsAre(DoubleEq(1e-6), DoubleEq(2e-6), DoubleEq(3e-6)));
  EXPECT_THAT(outcome.finished.at(1).tpot, ElementsAre(DoubleEq(6e-6), DoubleEq(4e-6), DoubleEq(5e-6)))
      << "spill + 1 forwards up to the first token: 1 + 2 + 3";
  EXPECT_DOUBLE_EQ(outcome.finished.at(0).prefill_seconds, 1e-6);
  EXPECT_DOUBLE_EQ(outcome.finished.at(0).decode_seconds, 5e-6);
  EXPECT_DOUBLE_EQ(outcome.finished.at(1).prefill_seconds, 6e-6);
  EXPECT_DOUBLE_EQ(outcome.finished.at(1).decode_seconds, 9e-6);
  EXPECT_EQ(outcome.finished.at(1).prefill_tokens, 4U);
}

TEST_F(StaticResult, CountsLatencyFromTheFirstStepOfACallOn) {
  open(R"({"max_requests": 1})");
  const Outcome outcome = run({{.text = "1 2", .max_new_tokens = 2}, {.text = "3 4", .max_new_tokens = 2}});
  EXPECT_DOUBLE_EQ(outcome.finished.at(0).latency, 3e-6);
  EXPECT_DOUBLE_EQ(outcome.finished.at(1).latency, 10e-6) << "both batches: the time of the whole call";
  ASSERT_TRUE(submit(engine_.get(), 2, {.text = "1 2", .max_new_tokens = 1}).ok());
  Outcome next;
  ASSERT_TRUE(drain(engine_.get(), &next).ok());
  EXPECT_DOUBLE_EQ(next.finished.at(2).latency, 5e-6) << "a new call";
}

TEST_F(StaticResult, HoldsForcedTokensWithTheirOwnLogprobs) {
  open("{}");
  const std::vector<int32_t> forced = {40, kToyEod, 41};
  const Outcome outcome =
      run({{.text = "1 2", .forced = forced, .max_new_tokens = 5, .top_n = 1}, {.text = "3 4", .max_new_tokens = 5}});
  const EngineResult& result = outcome.finished.at(0);
  ASSERT_GE(result.tokens.size(), 3U);
  EXPECT_THAT(std::vector<int32_t>(result.tokens.begin(), result.tokens.begin() + 3), ElementsAre(40, kToyEod, 41))
      << "an EOD does not end what is forced";
  std::vector<int32_t> all = {1, 2, 40, kToyEod, 41};
  const std::vector<int32_t> rest = continuation(all, 2);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(result.tokens, std::vector<int32_t>(all.begin() + 2, all.end()));
  EXPECT_EQ(result.generated_logprobs, logprobs(all, 2));
  EXPECT_EQ(result.generated_top_n.ids[0], toy_argmax(model_, std::vector<int32_t>{1, 2}))
      << "the candidates are the model's";
  EXPECT_EQ(outcome.finished.at(1).tokens, continuation({3, 4}, 5));
}

TEST_F(StaticResult, StopsForcingAtTheNumberOfNewTokens) {
  open("{}");
  const Outcome outcome = run({{.text = "1 2", .forced = {9, 9, 9, 9}, .max_new_tokens = 2, .want = 0}});
  EXPECT_THAT(outcome.finished.at(0).tokens, ElementsAre(9, 9));
  EXPECT_THAT(model_.forwards[0].output_rows, ElementsAre(0)) << "nothing is asked of the model";
}

TEST_F(StaticResult, HoldsTheRoutingOfEveryTokenThatWentThroughTheModel) {
  model_.moe_layers = 2;
  model_.moe_topk = 3;
  open(R"({"max_requests": 2})");
  const std::vector<ToyRequest> requests = {{.text = "1 2 3", .max_new_tokens = 4, .want = ASSAY_WANT_ROUTING},
                                            {.text = "4", .max_new_tokens = 4, .want = ASSAY_WANT_ROUTING}};
  const Outcome outcome = run(requests);
  for (size_t i = 0; i < 2; ++i) {
    const EngineResult& result = outcome.finished.at(i);
    std::vector<int32_t> all = result.prompt_ids;
    all.insert(all.end(), result.tokens.begin(), result.tokens.end());
    EXPECT_EQ(result.routing_tokens, all.size() - 1);
    EXPECT_EQ(result.moe_layers, 2U);
    EXPECT_EQ(result.moe_topk, 3U);
    std::vector<uint16_t> expected;
    for (size_t n = 1; n < all.size(); ++n) {
      const std::vector<uint16_t> chosen = toy_routing(model_, std::span(all).first(n));
      expected.insert(expected.end(), chosen.begin(), chosen.end());
    }
    EXPECT_EQ(result.routing, expected);
  }
}

TEST_F(StaticResult, CutsTheRoutingOfATokenWhoseSuccessorWasTheEod) {
  model_.moe_layers = 1;
  model_.moe_topk = 1;
  model_.prefers = [](std::span<const int32_t> sequence) { return sequence.size() == 4 ? kToyEod : -1; };
  open("{}");
  const Outcome outcome = run({{.text = "1 2 3", .want = ASSAY_WANT_ROUTING}});
  EXPECT_THAT(outcome.finished.at(0).tokens, SizeIs(1));
  EXPECT_THAT(outcome.finished.at(0).routing, SizeIs(3)) << "prompt + generated - 1";
}

TEST_F(StaticResult, HasNoRoutingWhereNoLayerRoutes) {
  open("{}");
  const Outcome outcome = run({{.text = "1 2 3", .want = ASSAY_WANT_ROUTING}});
  EXPECT_THAT(outcome.finished.at(0).routing, IsEmpty());
  EXPECT_EQ(outcome.finished.at(0).moe_layers, 0U);
}

TEST_F(StaticResult, StreamsEveryTokenOnce) {
  open(R"({"max_requests": 2})");
  const Outcome outcome = run({{.text = "1 2 3"}, {.text = "4"}, {.text = "5 6"}});
  for (uint64_t id : {0, 1, 2}) EXPECT_EQ(outcome.streamed.at(id), outcome.finished.at(id).tokens);
}

TEST_F(StaticResult, ContinuesTheTextOfThePrompt) {
  open("{}");
  const Outcome outcome = run({{.text = "1 2 3", .max_new_tokens = 2}, {.ids = {1, 2, 3}, .max_new_tokens = 2}});
  const std::vector<int32_t> tokens = continuation({1, 2, 3}, 2);
  const std::string text = " " + std::to_string(tokens[0]) + " " + std::to_string(tokens[1]);
  EXPECT_EQ(outcome.finished.at(0).prompt, "1 2 3");
  EXPECT_EQ(outcome.finished.at(0).text, text);
  EXPECT_EQ(outcome.finished.at(1).prompt, "1 2 3") << "read back from the ids";
  EXPECT_EQ(outcome.finished.at(1).text, text);
  EXPECT_THAT(host_.lines(), IsEmpty());
}

TEST_F(StaticResult, HasNoTextAndNoEodWithoutATokenizer) {
  model_.prefers = [](std::span<const int32_t>) { return kToyEod; };
  open("{}", "{}");
  const Outcome outcome = run({{.ids = {1, 2}, .max_new_tokens = 2, .top_n = 1}, {.text = "1 2"}});
  const EngineResult& result = outcome.finished.at(0);
  EXPECT_THAT(result.tokens, ElementsAre(kToyEod, kToyEod));
  EXPECT_EQ(result.prompt, std::nullopt);
  EXPECT_EQ(result.text, std::nullopt);
  EXPECT_EQ(result.generated_top_n.texts[0], std::nullopt);
  EXPECT_EQ(outcome.failed.at(1).code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace assay::engines
