#include "core/compare/evidence_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/compare/render.h"

namespace assay::compare {
namespace {

using testing::HasSubstr;

RequestEvidence full() {
  RequestEvidence one;
  one.request = "7";
  one.prompt = "caf\u00e9 \"quoted\"";
  one.golden_text = "golden";
  one.result_text = "result";
  one.text_difference = 3;
  one.text_offset = 2;
  one.golden_prompt_ids = {1, 2};
  one.result_prompt_ids = {1, 3};
  one.first_divergent = 5;
  one.first_shown = 4;
  one.golden_tokens = 24;
  one.result_tokens = 23;
  const TokenView golden{.id = 11, .text = " a", .logprob = -0.5};
  const TokenView result{.id = 12, .text = "", .logprob = std::nullopt};
  one.tokens = {{golden, result, 0.25}, {golden, std::nullopt, std::nullopt}};
  one.split = Split{.index = 5,
                    .golden = golden,
                    .result = result,
                    .gap = 0.1 + 0.2,
                    .gap_ulps = 1.5,
                    .golden_rank = 1,
                    .near_tie = true,
                    .routing_tie = true,
                    .top = {{result, false, true}, {golden, true, false}}};
  one.logprobs = LogprobStatistics{
      .count = 9, .max = 0.5, .mean = 0.25, .p99 = 0.375, .over = 2, .tolerance = 0.001, .max_index = 8};
  one.reanchoring = Reanchoring{.method = "forced",
                                .not_done = "because",
                                .positions = 24,
                                .near_ties = 1,
                                .routing_ties = 3,
                                .true_splits = 2,
                                .lone = true,
                                .reproduced = true,
                                .tie_limit_ulps = 8,
                                .tie_limit_nats = 0.01,
                                .splits = {*one.split},
                                .logprobs = one.logprobs};
  one.routing = RoutingEvidence{.compared = 100,
                                .differing = 3,
                                .first_layer = 1,
                                .by_layer = {0, 3},
                                .first = {{.token = 4, .layer = 1, .golden = {1, 2}, .result = {1, 9}, .margin = 0.5}}};
  return one;
}

TEST(EvidenceJson, AFullObjectGoesThereAndBack) {
  CaseVerdict verdict;
  verdict.verdict = Verdict::kWaived;
  verdict.judged = Verdict::kDrift;
  verdict.declared = "waived by a, until then";
  verdict.environment = {"device: golden a, result b"};
  verdict.evidence = {full(), RequestEvidence()};
  const std::string json = verdict_json(verdict);
  const Result<CaseVerdict> back = parse_verdict_json(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(verdict_json(*back), json);
  EXPECT_EQ(back->judged, Verdict::kDrift);
  EXPECT_EQ(back->declared, verdict.declared);
  EXPECT_EQ(back->environment, verdict.environment);
  ASSERT_EQ(back->evidence.size(), 2U);
  const RequestEvidence& one = back->evidence[0];
  EXPECT_EQ(one.split->gap, 0.1 + 0.2);
  EXPECT_EQ(one.tokens[0].golden->logprob, -0.5);
  EXPECT_FALSE(one.tokens[1].result.has_value());
  EXPECT_EQ(one.tokens[0].result->logprob, std::nullopt);
  EXPECT_EQ(one.reanchoring->splits[0].top[1].token.id, 11);
  EXPECT_EQ(one.routing->first[0].result, (std::vector<uint16_t>{1, 9}));
  EXPECT_EQ(back->evidence[1].first_divergent, -1);
  // Every member is written, so that none is forgotten in visit_members.
  for (const char* name : {"tie_limit_nats", "max_index", "by_layer", "margin", "result_prompt_ids", "text_offset",
                           "routing_ties", "lone", "routing_tie"}) {
    EXPECT_THAT(json, HasSubstr(std::string("\"") + name + "\":"));
  }
}

TEST(EvidenceJson, WhatBothSidesShareIsWrittenOnce) {
  const TokenView token{7, " seven", -0.5};
  const TokenView other{7, " seven", -0.25};
  RequestEvidence one;
  one.tokens = {{token, token, 0.0}, {token, other, 0.25}, {token, TokenView{7, " seven", {}}, {}}, {token, {}, {}}};
  CaseVerdict verdict;
  verdict.evidence = {one};
  const std::string json = verdict_json(verdict);
  EXPECT_THAT(json, HasSubstr(R"("tokens":[{"golden":{"id":7,"text":" seven","logprob":-0.5},"delta":0.0,"same":true},)"
                              R"({"golden":{"id":7,"text":" seven","logprob":-0.5},"result":{"logprob":-0.25},)"
                              R"("delta":0.25},{"golden":{"id":7,"text":" seven","logprob":-0.5},"result":{}},)"
                              R"({"golden":{"id":7,"text":" seven","logprob":-0.5}}])"));
  const Result<CaseVerdict> back = parse_verdict_json(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  const std::vector<AlignedToken>& tokens = back->evidence[0].tokens;
  ASSERT_EQ(tokens.size(), 4U);
  EXPECT_EQ(tokens[0].result->logprob, -0.5);
  EXPECT_EQ(tokens[1].result->logprob, -0.25);
  EXPECT_EQ(tokens[2].result->logprob, std::nullopt);
  EXPECT_FALSE(tokens[3].result.has_value());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tokens[i].result->id, 7);
    EXPECT_EQ(tokens[i].result->text, " seven");
  }
}

TEST(EvidenceJson, NansAndInfinitiesSurvive) {
  RequestEvidence one;
  one.split = Split();
  one.split->gap = std::numeric_limits<double>::quiet_NaN();
  one.split->gap_ulps = std::numeric_limits<double>::infinity();
  one.logprobs.emplace().max = -std::numeric_limits<double>::infinity();
  CaseVerdict verdict;
  verdict.evidence = {one};
  Finding finding;
  finding.max_abs_difference = std::numeric_limits<double>::infinity();
  verdict.metrics = {{"logprobs", Verdict::kInvalid, {finding}}};
  const Result<CaseVerdict> back = parse_verdict_json(verdict_json(verdict));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(std::isnan(*back->evidence[0].split->gap));
  EXPECT_EQ(back->evidence[0].split->gap_ulps, std::numeric_limits<double>::infinity());
  EXPECT_EQ(back->evidence[0].logprobs->max, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(back->metrics[0].findings[0].max_abs_difference, std::numeric_limits<double>::infinity());
}

TEST(EvidenceJson, WrongTypesAreRefusedWithOneLine) {
  const std::string head = R"({"verdict": "DRIFT", "reason": "", "golden": "", "metrics": [], "evidence": )";
  for (const char* bad :
       {"7", "[7]", R"([{"request": 7}])", R"([{"tokens": {}}])", R"([{"split": {"gap": "much"}}])"}) {
    EXPECT_EQ(parse_verdict_json(head + bad + "}").status().code(), StatusCode::kInvalid) << bad;
  }
  EXPECT_TRUE(parse_verdict_json(head + R"([{"of a later version": 7}]})").ok());
}

}  // namespace
}  // namespace assay::compare
