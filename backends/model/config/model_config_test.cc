#include "backends/model/config/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace assay::model {
namespace {

using ::testing::HasSubstr;

ModelConfig small() {
  ModelConfig config;
  config.num_layers = 2;
  config.hidden_size = 8;
  config.ffn_hidden_size = 32;
  config.num_attention_heads = 4;
  config.num_query_groups = 2;
  config.kv_channels = 4;
  config.vocab_size = 128;
  config.max_position_embeddings = 64;
  config.moe_layers = {false, true};
  config.moe = {.experts = 8, .topk = 2, .ffn_hidden_size = 16, .groups = 4, .group_topk = 2};
  return config;
}

TEST(ModelConfig, JsonRoundTripKeepsEveryField) {
  ModelConfig config = small();
  config.positions = Positions::kLearnedAbsolute;
  config.rotary_base = 1e6;
  config.rotary_percent = 0.5;
  config.norm = Norm::kRmsNorm;
  config.norm_epsilon = 1e-6;
  config.activation = Activation::kSquaredRelu;
  config.arithmetic = Arithmetic::kBf16;
  config.linear_bias = false;
  config.moe.score = RouterScore::kSigmoid;
  config.moe.scaling_factor = 2.5;
  const Result<ModelConfig> back = parse_model_config(to_json(config));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, config);
  EXPECT_EQ(to_json(*back), to_json(config));
}

TEST(ModelConfig, EveryFieldIsInTheJson) {
  const auto json = nlohmann::ordered_json::parse(to_json(small()));
  EXPECT_EQ(json.size(), 23u);
  EXPECT_EQ(json["moe"].size(), 13u);
  EXPECT_EQ(json["positions"], "rope");
  EXPECT_EQ(json.begin().key(), "num_layers");
}

std::string parse_with(const std::string& key, const nlohmann::json& value) {
  auto json = nlohmann::json::parse(to_json(small()));
  json[nlohmann::json::json_pointer(key)] = value;
  const auto result = parse_model_config(json.dump());
  return result.ok() ? "ok" : result.status().message();
}

TEST(ModelConfig, ParseNamesTheBadField) {
  EXPECT_THAT(parse_with("/num_layers", "2"), HasSubstr("num_layers: an integer"));
  EXPECT_THAT(parse_with("/num_layers", 2.5), HasSubstr("num_layers: an integer"));
  EXPECT_THAT(parse_with("/hidden_size", 1ll << 40), HasSubstr("does not fit"));
  EXPECT_THAT(parse_with("/hidden_size", -(1ll << 40)), HasSubstr("does not fit"));
  EXPECT_THAT(parse_with("/norm", "BatchNorm"), HasSubstr("norm: \"BatchNorm\" is none of LayerNorm, RMSNorm"));
  EXPECT_THAT(parse_with("/moe/topk", nullptr), HasSubstr("moe.topk: an integer"));
  EXPECT_THAT(parse_with("/moe_layers", {1, 0}), HasSubstr("moe_layers: a list"));
  EXPECT_THAT(parse_with("/extra", 1), HasSubstr("extra: unknown field"));
  EXPECT_THAT(parse_with("/moe/extra", 1), HasSubstr("moe.extra: unknown field"));
  auto json = nlohmann::json::parse(to_json(small()));
  json.erase("kv_channels");
  EXPECT_THAT(parse_model_config(json.dump()).status().message(), HasSubstr("kv_channels: missing"));
  EXPECT_THAT(parse_model_config("[1").status().message(), HasSubstr("not a JSON object"));
}

std::string check(void (*change)(ModelConfig&)) {
  ModelConfig config = small();
  change(config);
  const Status status = validate(config);
  return status.ok() ? "ok" : status.message();
}

TEST(ModelConfig, ValidateNamesBothValues) {
  EXPECT_EQ(check([](ModelConfig&) {}), "ok");
  EXPECT_THAT(check([](ModelConfig& c) { c.num_query_groups = 3; }),
              HasSubstr("heads 4 is no multiple of num_query_groups 3"));
  EXPECT_THAT(check([](ModelConfig& c) { c.moe.topk = 9; }), HasSubstr("moe.topk 9 of 8 experts"));
  EXPECT_THAT(check([](ModelConfig& c) { c.moe.groups = 3; }),
              HasSubstr("8 experts cannot be split into moe.groups 3"));
  EXPECT_THAT(check([](ModelConfig& c) { c.moe.topk = 5; }), HasSubstr("which reach 4 experts"));
  EXPECT_THAT(check([](ModelConfig& c) { c.moe.group_topk = 5; }), HasSubstr("moe.group_topk 5 of 4 groups"));
  EXPECT_THAT(check([](ModelConfig& c) { c.moe_layers = {true}; }), HasSubstr("1 entries for num_layers 2"));
  EXPECT_THAT(check([](ModelConfig& c) { c.kv_channels = 3; }), HasSubstr("rotary dimension 3"));
  EXPECT_THAT(check([](ModelConfig& c) { c.rotary_percent = 0; }), HasSubstr("rotary_percent"));
  EXPECT_THAT(check([](ModelConfig& c) { c.vocab_size = 0; }), HasSubstr("vocab_size 0"));
  EXPECT_THAT(check([](ModelConfig& c) { c.hidden_size = 1 << 29; }), HasSubstr("hidden_size 536870912"));
}

TEST(ModelConfig, MoeIsNotCheckedInADenseModel) {
  EXPECT_EQ(check([](ModelConfig& c) {
              c.moe_layers = {false, false};
              c.moe = {};
            }),
            "ok");
}

}  // namespace
}  // namespace assay::model
