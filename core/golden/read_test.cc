#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "assay/golden.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ResultSet read_good(std::string_view json) {
  Result<ResultSet> set = read_results_text(json, "golden.json");
  EXPECT_TRUE(set.ok()) << set.status().message();
  return set.ok() ? *std::move(set) : ResultSet();
}

TEST(ReadResults, StaticFormFillsTypedArrays) {
  const ResultSet set =
      read_good(R"({"0": {"input_prompt": "Hi", "generated_text": " you\n", "generated_tokens": [7, 2],
    "tpot": [0.5, 0.25], "latency": 1, "generated_top_n_logprobs": [{" a": -0.5, " b": -1}, {" c": -2.5}],
    "logprobs": [-1.5, -0.5, -2.5]}})");
  EXPECT_EQ(set.form, GoldenForm::kStatic);
  ASSERT_EQ(set.requests.size(), 1U);
  const RequestRecord& request = set.requests[0];
  EXPECT_EQ(request.id, "0");
  EXPECT_EQ(request.prompt, "Hi");
  EXPECT_EQ(request.text, " you\n");
  EXPECT_THAT(*request.tokens, ElementsAre(7, 2));
  EXPECT_THAT(*request.tpot, ElementsAre(0.5, 0.25));
  EXPECT_EQ(request.latency, 1.0);
  EXPECT_THAT(*request.logprobs, ElementsAre(-1.5, -0.5, -2.5));
  ASSERT_TRUE(request.top_n.has_value());
  EXPECT_THAT(request.top_n->counts, ElementsAre(2, 1));
  EXPECT_EQ(request.top_n->entries[1].text, " b");
  EXPECT_EQ(request.top_n->entries[2].logprob, -2.5);
  EXPECT_TRUE(request.extra.empty());
}

TEST(ReadResults, DynamicFormKeepsQuantitiesAndFurtherFields) {
  const ResultSet set = read_good(R"({"0": {"input_prompt": "p", "generated_text": "t", "generated_tokens": [1],
    "latency": 2.5, "ttft": 0.1, "cuda_graph_request_count_map": {"16": 2}, "step_count": 30, "top_n_logprobs": null,
    "prompt_top_n_logprobs": [{"x": -1.0}], "prompt_logprobs": [-3.0], "generated_logprobs": [-1.0],
    "logprobs": [-3.0, -1.0]}, "throughput": [10.5, 20.0], "mem-max-allocated-bytes": 123456789012,
    "lifetime_prefill_token_count": 7, "async_sched_step_count": 3})");
  EXPECT_EQ(set.form, GoldenForm::kDynamic);
  ASSERT_EQ(set.requests.size(), 1U);
  const RequestRecord& request = set.requests[0];
  EXPECT_FALSE(request.top_n.has_value());
  EXPECT_TRUE(request.prompt_top_n.has_value());
  EXPECT_THAT(*request.prompt_logprobs, ElementsAre(-3.0));
  EXPECT_THAT(*request.generated_logprobs, ElementsAre(-1.0));
  ASSERT_EQ(request.extra.size(), 3U);
  EXPECT_EQ(request.extra[1].first, "cuda_graph_request_count_map");
  EXPECT_EQ(request.extra[1].second, R"({"16": 2})");
  ASSERT_EQ(set.quantities.size(), 4U);
  EXPECT_EQ(set.quantities[0].name, "throughput");
  EXPECT_FALSE(set.quantities[0].scalar);
  EXPECT_THAT(set.quantities[0].values, ElementsAre(10.5, 20.0));
  EXPECT_TRUE(set.quantities[1].scalar);
  EXPECT_THAT(set.quantities[1].values, ElementsAre(123456789012.0));
}

TEST(ReadResults, EveryFormIsTold) {
  EXPECT_EQ(read_good(R"({"0": {"generated_text": "t", "step_count": 3, "ttft": 1.0}})").form, GoldenForm::kApi);
  EXPECT_EQ(read_good(R"({"0": {"input_prompt": "p", "generated_text": "t", "generated_tokens": [1], "latency": 1.0,
                    "logprobs": [-1.0]}})")
                .form,
            GoldenForm::kCoordinator);
  EXPECT_EQ(read_good(R"({"0": {"id": 0, "generated_text": "t"}})").form, GoldenForm::kTextOnly);
  EXPECT_EQ(read_good(R"({"0": {"generated_tokens": [1]}})").form, GoldenForm::kTokensOnly);
  EXPECT_EQ(read_good(R"({"throughput": [1.0, 2.0]})").form, GoldenForm::kOther);
}

TEST(ReadResults, TextOnlyFormKeepsItsId) {
  const ResultSet set =
      read_good(R"({"1": {"id": "1", "generated_text": "b"}, "0": {"id": 0, "generated_text": "a"}})");
  ASSERT_EQ(set.requests.size(), 2U);
  EXPECT_EQ(set.requests[0].text, "a");
  EXPECT_EQ(set.requests[0].extra[0].second, "0");
  EXPECT_EQ(set.requests[1].extra[0].second, "\"1\"");
}

TEST(ReadResults, RoutingMarginsBelongToTheRoutingWhereverTheyStand) {
  const ResultSet set = read_good(R"({"0": {"routing_margins": [[0.5, Infinity], [0.25, 1]],
    "routing_indices": [[[1], [2]], [[3], [4]]]}, "1": {"routing_indices": [[[1]]], "routing_margins": null},
    "2": {"generated_tokens": [1], "routing_margins": [[1]]}})");
  EXPECT_THAT(set.requests[0].routing->margins, ElementsAre(0.5F, std::numeric_limits<float>::infinity(), 0.25F, 1.0F));
  EXPECT_TRUE(set.requests[1].routing->margins.empty());
  EXPECT_THAT(set.notes, ElementsAre("request 2: routing_margins without routing_indices: left out"));
  EXPECT_EQ(results_text(read_good(results_text(set))), results_text(set));
}

TEST(ReadResults, RoutingKeepsItsShapeAndPositions) {
  const ResultSet set = read_good(R"({"0": {"generated_tokens": [1], "routing_indices": [[[1, 2, 3], [4, 5, 65535]],
    [[7, 8, 9], [10, 11, 12]]], "routing_indices_token_indices": [3, 9]}})");
  ASSERT_TRUE(set.requests[0].routing.has_value());
  const Routing& routing = *set.requests[0].routing;
  EXPECT_EQ(routing.tokens, 2U);
  EXPECT_EQ(routing.layers, 2U);
  EXPECT_EQ(routing.topk, 3U);
  EXPECT_THAT(routing.experts, ElementsAre(1, 2, 3, 4, 5, 65535, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(routing.positions, ElementsAre(3, 9));
}

TEST(ReadResults, AStringThatHoldsTheObjectIsParsedOnceMore) {
  const ResultSet set = read_good(R"("{\"0\": {\"generated_text\": \"caf\\u00e9\", \"logprobs\": [NaN, -Infinity]}}")");
  EXPECT_TRUE(set.string_wrapped);
  EXPECT_EQ(set.requests[0].text, "caf\u00e9");
  EXPECT_TRUE(std::isnan((*set.requests[0].logprobs)[0]));
  EXPECT_TRUE(std::isinf((*set.requests[0].logprobs)[1]));
}

TEST(ReadResults, BareNanAndInfinitiesAreNumbers) {
  const ResultSet set =
      read_good(R"({"0": {"generated_text": "NaN, -Infinity", "logprobs": [NaN,-1.5, Infinity , -Infinity],
    "latency": NaN, "note": {"value": Infinity}}, "throughput": [1, NaN]})");
  const std::vector<double>& logprobs = *set.requests[0].logprobs;
  ASSERT_EQ(logprobs.size(), 4U);
  EXPECT_TRUE(std::isnan(logprobs[0]));
  EXPECT_EQ(logprobs[1], -1.5);
  EXPECT_EQ(logprobs[2], std::numeric_limits<double>::infinity());
  EXPECT_EQ(logprobs[3], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*set.requests[0].latency));
  EXPECT_EQ(set.requests[0].text, "NaN, -Infinity");
  EXPECT_EQ(set.requests[0].extra[0].second, R"({"value": Infinity})");
  EXPECT_TRUE(std::isnan(set.quantities[0].values[1]));
}

TEST(ReadResults, RequestsComeNumbersFirstThenTheRestBytewise) {
  const ResultSet set =
      read_good(R"({"b": {"generated_text": "x"}, "10": {"generated_text": "x"}, "9": {"generated_text": "x"},
    "a": {"generated_text": "x"}, "99999999999999999999999": {"generated_text": "x"}, "02": {"generated_text": "x"}})");
  std::vector<std::string> ids;
  for (const RequestRecord& request : set.requests) ids.push_back(request.id);
  EXPECT_THAT(ids, ElementsAre("02", "9", "10", "99999999999999999999999", "a", "b"));
  EXPECT_EQ(set.find("10")->id, "10");
  EXPECT_EQ(set.find("2"), nullptr);
  EXPECT_EQ(set.find("c"), nullptr);
}

TEST(ReadResults, TheLastOfDuplicateKeysWinsAndIsNoted) {
  const ResultSet set =
      read_good(R"({"0": {"generated_text": "old", "generated_tokens": [1]}, "throughput": 1, "throughput": 2,
    "0": {"generated_text": "x", "generated_text": "new", "step": 1, "step": 2}})");
  ASSERT_EQ(set.requests.size(), 1U);
  EXPECT_EQ(set.requests[0].text, "new");
  EXPECT_FALSE(set.requests[0].tokens.has_value());
  EXPECT_EQ(set.requests[0].extra[0].second, "2");
  EXPECT_THAT(set.quantities[0].values, ElementsAre(2.0));
  EXPECT_EQ(set.notes.size(), 4U);
  EXPECT_THAT(set.notes[1], HasSubstr("\"0\" occurs more than once"));
}

TEST(ReadResults, EqualTokenTextsOfOnePositionCollideAsInPython) {
  const ResultSet set = read_good(R"({"0": {"top_n_logprobs": [{"a": -1, "b": -2, "a": -3}]}})");
  EXPECT_THAT(set.requests[0].top_n->counts, ElementsAre(2));
  EXPECT_EQ(set.requests[0].top_n->entries[0].logprob, -3.0);
}

TEST(ReadResults, ProvenanceIsNoRequest) {
  const ResultSet set = read_good(R"({"assay": {"engine": "x", "seed": [1, 2]}, "0": {"generated_text": "t"}})");
  EXPECT_EQ(set.requests.size(), 1U);
  EXPECT_EQ(set.extra, R"({"engine": "x", "seed": [1, 2]})");
}

}  // namespace
}  // namespace assay
