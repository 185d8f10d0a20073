// What a result holds.
#include <algorithm>
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

// Sampled, greedy and forced tokens; beside prompt outputs and without; long and short prompts in one batch.
TEST_F(StaticResult, HoldsTheRawLogitAndTheRankOfEveryGeneratedToken) {
  open(R"({"max_requests": 4})");
  const uint32_t everything = ASSAY_WANT_LOGPROBS | ASSAY_WANT_LOGITS;
  assay_sampling sampling = ToyRequest().sampling;
  sampling.top_k = 0;
  const std::vector<ToyRequest> requests = {
      {.text = "1 2 3", .max_new_tokens = 6, .top_n = 2, .want = everything, .sampling = sampling},
      {.text = "4 5", .forced = {9, kToyEod, 11}, .max_new_tokens = 6, .want = everything, .sampling = sampling},
      {.text = "6 7 8 9", .forced = {5}, .max_new_tokens = 6, .want = ASSAY_WANT_LOGITS, .sampling = sampling},
      {.text = "6 7", .max_new_tokens = 6, .sampling = sampling}};
  const Outcome outcome = run(requests);
  bool below_the_first = false;
  for (size_t i = 0; i < 3; ++i) {
    const EngineResult& result = outcome.finished.at(i);
    std::vector<int32_t> sequence = result.prompt_ids;
    ASSERT_THAT(result.generated_ranks, SizeIs(result.tokens.size()));
    ASSERT_THAT(result.generated_logits, SizeIs(result.tokens.size()));
    for (size_t g = 0; g < result.tokens.size(); ++g) {
      const std::vector<double> logits = toy_logits(model_, sequence);
      const double own = logits[static_cast<size_t>(result.tokens[g])];
      EXPECT_EQ(result.generated_logits[g], static_cast<float>(own));
      EXPECT_EQ(result.generated_ranks[g], std::count_if(logits.begin(), logits.end(), [&](double l) {
                  return static_cast<float>(l) > static_cast<float>(own);
                }));
      below_the_first = below_the_first || result.generated_ranks[g] > 0;
      sequence.push_back(result.tokens[g]);
    }
  }
  EXPECT_TRUE(below_the_first);
  EXPECT_THAT(outcome.finished.at(3).generated_ranks, IsEmpty());
}

TEST_F(StaticResult, TheWishForLogitsChangesNothingElse) {
  open(R"({"max_requests": 2})");
  std::vector<ToyRequest> requests = {{.text = "1 2 3 4", .max_new_tokens = 5, .top_n = 3},
                                      {.text = "5 6 7", .forced = {8, 9}, .max_new_tokens = 5}};
  const Outcome plain = run(requests);
  ASSERT_TRUE(engine_->reset().ok());
  model_.forwards.clear();
  for (ToyRequest& request : requests) request.want |= ASSAY_WANT_LOGITS;
  const Outcome with = run(requests);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(plain.finished.at(i).tokens, with.finished.at(i).tokens);
    EXPECT_EQ(plain.finished.at(i).prompt_logprobs, with.finished.at(i).prompt_logprobs);
    EXPECT_EQ(plain.finished.at(i).generated_logprobs, with.finished.at(i).generated_logprobs);
    EXPECT_EQ(plain.finished.at(i).generated_top_n.ids, with.finished.at(i).generated_top_n.ids);
    EXPECT_EQ(plain.finished.at(i).prompt_top_n.logprobs, with.finished.at(i).prompt_top_n.logprobs);
    EXPECT_EQ(with.finished.at(i).tpot.size(), with.finished.at(i).tokens.size());
  }
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(2, 2)) << "the last prompt token goes alone";
}

TEST_F(StaticResult, OneTokenAndNoTokenWithLogits) {
  open("{}");
  const Outcome outcome = run({{.text = "1", .max_new_tokens = 1, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_LOGITS}});
  EXPECT_THAT(outcome.finished.at(0).generated_ranks, ElementsAre(0));
  ASSERT_TRUE(engine_->reset().ok());
  const Outcome none = run({{.text = "1 2", .max_new_tokens = 0, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_LOGITS}});
  EXPECT_THAT(none.finished.at(0).generated_ranks, IsEmpty());
  EXPECT_THAT(none.finished.at(0).prompt_logprobs, SizeIs(1));
}

TEST_F(StaticResult, HoldsTheMarginsOfABackendThatWritesThem) {
  model_.moe_layers = 2;
  model_.moe_topk = 3;
  const std::vector<ToyRequest> requests = {
      {.text = "1 2 3", .forced = {7, 8}, .max_new_tokens = 4, .want = ASSAY_WANT_ROUTING},
      {.text = "6", .max_new_tokens = 4},
      {.text = "4", .max_new_tokens = 4, .want = ASSAY_WANT_ROUTING}};
  open(R"({"max_requests": 3})");
  EXPECT_THAT(run(requests).finished.at(0).routing_margins, IsEmpty()) << "a backend of ABI 1.0";
  ASSERT_TRUE(engine_->reset().ok());
  model_.writes_margins = true;
  const Outcome outcome = run(requests);
  for (const size_t i : {size_t{0}, size_t{2}}) {
    const EngineResult& result = outcome.finished.at(i);
    std::vector<int32_t> all = result.prompt_ids;
    all.insert(all.end(), result.tokens.begin(), result.tokens.end());
    std::vector<float> expected;
    for (size_t n = 1; n < all.size(); ++n) {
      const std::vector<float> row = toy_margins(model_, std::span(all).first(n));
      expected.insert(expected.end(), row.begin(), row.end());
    }
    EXPECT_EQ(result.routing_margins, expected);
  }
  EXPECT_THAT(outcome.finished.at(1).routing_margins, IsEmpty());
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
