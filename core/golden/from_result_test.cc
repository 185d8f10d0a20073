#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/golden.h"
#include "assay/sdk.hpp"

namespace assay {
namespace {

using testing::ElementsAre;

TEST(RecordOf, JoinsLogprobsAndNamesCandidates) {
  const std::vector<int32_t> tokens = {4, 5};
  const std::vector<double> prompt_logprobs = {-1};
  const std::vector<double> logprobs = {-2, -3};
  const std::vector<assay_candidate> candidates = {
      {4, 0, -2, sdk::view("x")}, {9, 0, -4, {}}, {5, 0, -3, sdk::view("y")}};
  const std::vector<uint32_t> counts = {2, 1};
  auto result = sdk::sized<assay_result>();
  result.prompt = sdk::view("p");
  result.text = sdk::view("xy");
  result.tokens = sdk::view(std::span<const int32_t>(tokens));
  result.prompt_logprobs = sdk::view(std::span<const double>(prompt_logprobs));
  result.generated_logprobs = sdk::view(std::span<const double>(logprobs));
  result.generated_top_n = {candidates.data(), counts.data(), counts.size()};
  result.extra = sdk::view(R"({"finish": "length"})");
  const Result<RequestRecord> record = record_of(result, "3");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->id, "3");
  EXPECT_THAT(*record->logprobs, ElementsAre(-1, -2, -3));
  EXPECT_EQ(record->top_n->entries[1].text, "9");
  EXPECT_THAT(record->top_n->counts, ElementsAre(2, 1));
  EXPECT_EQ(record->extra[0].second, "\"length\"");
}

TEST(RecordOf, ARequestThatEndedBeforeItsFirstTokenHasThePromptsLogprobs) {
  const std::vector<double> prompt_logprobs = {-1, -2};
  const std::vector<assay_candidate> candidates = {{4, 0, -2, sdk::view("x")}, {5, 0, -3, sdk::view("y")}};
  const std::vector<uint32_t> counts = {1, 1};
  auto result = sdk::sized<assay_result>();
  result.prompt_logprobs = sdk::view(std::span<const double>(prompt_logprobs));
  result.prompt_top_n = {candidates.data(), counts.data(), counts.size()};
  const Result<RequestRecord> record = record_of(result, "0");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_THAT(*record->logprobs, ElementsAre(-1, -2));
  ASSERT_TRUE(record->top_n.has_value());
  EXPECT_TRUE(record->top_n->counts.empty());
}

TEST(RecordOf, ALatencyThatTheEngineDoesNotTellStaysAbsent) {
  auto result = sdk::sized<assay_result>();
  EXPECT_FALSE(record_of(result, "0")->latency.has_value());
  result.latency = 0.25;
  EXPECT_EQ(record_of(result, "0")->latency, 0.25);
}

TEST(RecordOf, TakesIdsRanksLogitsAndMargins) {
  const std::vector<int32_t> prompt = {1, 2};
  const std::vector<int32_t> tokens = {4, 5};
  const std::vector<int32_t> ranks = {0, 7};
  const std::vector<double> logits = {12.5, 3};
  const std::vector<uint16_t> routing = {1, 2, 3, 4, 5, 6};
  const std::vector<float> margins = {0.5F, 0, 0.25F};
  const std::vector<assay_candidate> candidates = {{4, 0, -2, sdk::view("x")}, {9, 0, -4, sdk::view("x")}};
  const std::vector<uint32_t> counts = {2};
  auto result = sdk::sized<assay_result>();
  result.prompt_ids = sdk::view(std::span<const int32_t>(prompt));
  result.tokens = sdk::view(std::span<const int32_t>(tokens));
  result.generated_ranks = sdk::view(std::span<const int32_t>(ranks));
  result.generated_logits = sdk::view(std::span<const double>(logits));
  result.generated_top_n = {candidates.data(), counts.data(), counts.size()};
  result.routing = routing.data();
  result.routing_tokens = 3;
  result.moe_layers = 1;
  result.moe_topk = 2;
  result.routing_margins = margins.data();
  const Result<RequestRecord> record = record_of(result, "0");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->prompt_ids, prompt);
  EXPECT_EQ(record->ranks, ranks);
  EXPECT_EQ(record->logits, logits);
  EXPECT_EQ(record->routing->margins, margins);
  ASSERT_EQ(record->top_n->entries.size(), 1U) << "equal texts collide";
  EXPECT_EQ(record->top_n->entries[0].id, 9);
}

// An engine of ABI 1.0 ends its result at `extra`; what lies behind is not its own.
TEST(RecordOf, MembersBeyondTheSizeAreNotRead) {
  const std::vector<int32_t> tokens = {4};
  const std::vector<uint16_t> routing = {1};
  auto result = sdk::sized<assay_result>();
  result.size = offsetof(assay_result, generated_ranks);
  result.tokens = sdk::view(std::span<const int32_t>(tokens));
  result.routing = routing.data();
  result.routing_tokens = result.moe_layers = result.moe_topk = 1;
  result.generated_ranks = {nullptr, 99};
  result.generated_logits = {nullptr, 99};
  result.routing_margins = reinterpret_cast<const float*>(uintptr_t{1});
  const Result<RequestRecord> record = record_of(result, "0");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_FALSE(record->ranks.has_value());
  EXPECT_FALSE(record->logits.has_value());
  EXPECT_TRUE(record->routing->margins.empty());
}

TEST(RecordOf, ContradictingSizesOfRanksAreRefused) {
  const std::vector<int32_t> ranks = {0, 7};
  auto result = sdk::sized<assay_result>();
  result.generated_ranks = sdk::view(std::span<const int32_t>(ranks));
  EXPECT_THAT(record_of(result, "0").status().message(), testing::HasSubstr("2 generated ranks for 0 tokens"));
}

TEST(RecordOf, ContradictingSizesAreRefused) {
  const std::vector<double> logprobs = {-2};
  auto result = sdk::sized<assay_result>();
  result.generated_logprobs = sdk::view(std::span<const double>(logprobs));
  EXPECT_THAT(record_of(result, "0").status().message(), testing::HasSubstr("1 generated logprobs for 0 tokens"));
}

TEST(RecordOf, TokenIndicesOfRoutingRowsComeThroughExtra) {
  const std::vector<uint16_t> routing = {1, 2};
  auto result = sdk::sized<assay_result>();
  result.routing = routing.data();
  result.routing_tokens = 2;
  result.moe_layers = 1;
  result.moe_topk = 1;
  result.extra = sdk::view(R"({"routing_indices_token_indices": [4, 9], "ttft": 1})");
  const Result<RequestRecord> record = record_of(result, "0");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->routing->positions, (std::vector<int32_t>{4, 9}));
  ASSERT_EQ(record->extra.size(), 1U);
  EXPECT_EQ(record->extra[0].first, "ttft");
  for (const char* bad : {"[4]", "[4, -1]", "[4, 0.5]", "7", "[4, 99999999999]"}) {
    const std::string extra = std::string(R"({"routing_indices_token_indices": )") + bad + "}";
    result.extra = sdk::view(extra);
    EXPECT_THAT(record_of(result, "0").status().message(), testing::HasSubstr("expected 2 token indices")) << bad;
  }
}

TEST(RecordOf, AnEngineThatKnowsNoIdsHasTextAndLogprobsWithoutTokens) {
  auto result = sdk::sized<assay_result>();
  const std::vector<double> logprobs = {-0.5, -0.25};
  result.text = sdk::view(std::string_view("ab"));
  result.generated_logprobs = sdk::view(std::span<const double>(logprobs));
  const Result<RequestRecord> record = record_of(result, "0");
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_FALSE(record->tokens.has_value());
  EXPECT_EQ(record->logprobs, logprobs);
}

TEST(RecordOf, ExtraIsNotNestedTooDeep) {
  auto result = sdk::sized<assay_result>();
  const std::string extra = R"({"a": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  result.extra = sdk::view(extra);
  EXPECT_EQ(record_of(result, "7").status().message(),
            "request 7: extra of the engine's result is nested more than 256 deep");
}

TEST(RecordOf, ExtraMustBeAnObject) {
  auto result = sdk::sized<assay_result>();
  result.extra = sdk::view("[1]");
  EXPECT_EQ(record_of(result, "0").status().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace assay
