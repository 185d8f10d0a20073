#include "backends/model/config/resolve_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::model {
namespace {

using ::testing::HasSubstr;

template <class T>
ArgValue value_of(T content) {
  ArgValue value;
  value.value = std::move(content);
  return value;
}
ArgValue b(bool value) { return value_of(value); }
ArgValue i(int64_t value) { return value_of(value); }
ArgValue d(double value) { return value_of(value); }
ArgValue s(const char* value) { return value_of(std::string(value)); }
ArgValue none() { return {}; }
ArgValue list(std::initializer_list<int64_t> values) {
  ArgList items;
  for (const int64_t value : values) items.emplace_back().value = value;
  return value_of(std::move(items));
}

ArgRecord least() {
  return {
      {"num_layers", i(4)}, {"hidden_size", i(192)}, {"num_attention_heads", i(4)}, {"max_position_embeddings", i(64)}};
}

ArgRecord with(ArgRecord record, const ArgRecord& more) {
  for (const auto& [name, value] : more) record[name] = value;
  return record;
}

Result<ResolvedModel> resolve(const ArgRecord& given, const ArgRecord* checkpoint = nullptr) {
  return resolve_model({.given = given, .checkpoint = checkpoint, .tokenizer_vocab_size = 1000});
}

std::string failure(const ArgRecord& more, const ArgRecord* checkpoint = nullptr) {
  const auto model = resolve(with(least(), more), checkpoint);
  return model.ok() ? "ok" : model.status().message();
}

std::string origin(const ResolvedModel& model, const std::string& field) {
  for (const FieldOrigin& known : model.origins) {
    if (known.field == field) return known.value + " " + std::string(to_string(known.origin)) + " " + known.source;
  }
  return "no such field";
}

TEST(ResolveModel, DefaultsAreMegatrons) {
  const auto model = resolve(least());
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ModelConfig& config = model->config;
  EXPECT_EQ(config.ffn_hidden_size, 768);
  EXPECT_EQ(config.kv_channels, 48);
  EXPECT_EQ(config.num_query_groups, 4);
  EXPECT_EQ(config.vocab_size, 1024);
  EXPECT_EQ(config.positions, Positions::kLearnedAbsolute);
  EXPECT_EQ(config.norm, Norm::kLayerNorm);
  EXPECT_EQ(config.norm_epsilon, 1e-5);
  EXPECT_EQ(config.activation, Activation::kGeluTanh);
  EXPECT_TRUE(config.linear_bias);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.arithmetic, Arithmetic::kFp32);
  EXPECT_FALSE(config.any_moe());
  EXPECT_EQ(origin(*model, "num_layers"), "4 argument num_layers");
  EXPECT_EQ(origin(*model, "norm_epsilon"), "1e-05 default ");
  EXPECT_THAT(describe(*model), HasSubstr("ffn_hidden_size         = 768  (default)\n"));
}

TEST(ResolveModel, SwigluWidthIsEightThirdsInSteps) {
  EXPECT_EQ(resolve(with(least(), {{"swiglu", b(true)}}))->config.ffn_hidden_size, 512);
  EXPECT_EQ(resolve(with(least(), {{"swiglu", b(true)}, {"hidden_size", i(200)}}))->config.ffn_hidden_size, 512);
  EXPECT_EQ(resolve(with(least(), {{"swiglu", b(true)}, {"hidden_size", i(256)}}))->config.ffn_hidden_size, 640);
}

TEST(ResolveModel, GeluIsTheTanhFormOnlyWithBiasAndFusion) {
  EXPECT_EQ(resolve(with(least(), {{"bias_gelu_fusion", b(false)}}))->config.activation, Activation::kGeluErf);
  EXPECT_EQ(resolve(with(least(), {{"add_bias_linear", b(false)}}))->config.activation, Activation::kGeluErf);
  EXPECT_EQ(resolve(with(least(), {{"squared_relu", b(true)}}))->config.activation, Activation::kSquaredRelu);
  EXPECT_THAT(failure({{"squared_relu", b(true)}, {"swiglu", b(true)}}), HasSubstr("exclude each other"));
}

TEST(ResolveModel, QueryGroupsCountOnlyWithGroupedAttention) {
  EXPECT_EQ(resolve(with(least(), {{"num_query_groups", i(2)}}))->config.num_query_groups, 4);
  EXPECT_EQ(
      resolve(with(least(), {{"num_query_groups", i(2)}, {"group_query_attention", b(true)}}))->config.num_query_groups,
      2);
  EXPECT_EQ(resolve(with(least(), {{"group_query_attention", b(true)}}))->config.num_query_groups, 1);
  EXPECT_THAT(failure({{"num_query_groups", i(3)}, {"group_query_attention", b(true)}}), HasSubstr("no multiple"));
}

TEST(ResolveModel, VocabularyIsPaddedUnlessItsSizeIsGiven) {
  EXPECT_EQ(resolve(with(least(), {{"make_vocab_size_divisible_by", i(64)}, {"tensor_model_parallel_size", i(8)}}))
                ->config.vocab_size,
            1024);
  EXPECT_EQ(resolve(with(least(), {{"make_vocab_size_divisible_by", i(1)}}))->config.vocab_size, 1000);
  EXPECT_EQ(resolve(with(least(), {{"padded_vocab_size", i(2000)}}))->config.vocab_size, 2000);
  EXPECT_THAT(failure({{"pad_vocab_size", b(false)}}), HasSubstr("--no-pad-vocab-size needs"));
  EXPECT_THAT(failure({{"make_vocab_size_divisible_by", i(0)}}), HasSubstr("multiple of 0"));
}

ArgRecord experts() {
  return {{"num_experts", i(8)}, {"swiglu", b(true)}, {"add_bias_linear", b(false)}, {"moe_router_topk", i(2)}};
}

TEST(ResolveModel, ExpertsFollowTheirArguments) {
  const auto model = resolve(with(with(least(), experts()), {{"moe_router_score_function", s("sigmoid")},
                                                             {"moe_router_enable_expert_bias", b(true)},
                                                             {"moe_router_num_groups", i(4)},
                                                             {"moe_router_group_topk", i(2)},
                                                             {"moe_router_topk_scaling_factor", d(2.5)},
                                                             {"moe_shared_expert_intermediate_size", i(96)},
                                                             {"moe_router_dtype", s("fp32")},
                                                             {"moe_ffn_hidden_size", i(48)},
                                                             {"moe_layer_freq", list({0, 1, 1, 0})}}));
  ASSERT_TRUE(model.ok()) << model.status().message();
  const MoeConfig expected{.experts = 8,
                           .topk = 2,
                           .ffn_hidden_size = 48,
                           .shared_ffn_hidden_size = 96,
                           .score = RouterScore::kSigmoid,
                           .expert_bias = true,
                           .groups = 4,
                           .group_topk = 2,
                           .scaling_factor = 2.5,
                           .router_fp32 = true};
  EXPECT_EQ(model->config.moe, expected);
  EXPECT_EQ(model->config.moe_layers, (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(origin(*model, "moe_layers"), "[false,true,true,false] argument moe_layer_freq");
  EXPECT_EQ(origin(*model, "moe.topk"), "2 argument moe_router_topk");
}

TEST(ResolveModel, ExpertWidthDefaultsToTheDenseWidth) {
  EXPECT_EQ(resolve(with(with(least(), experts()), {{"ffn_hidden_size", i(320)}}))->config.moe.ffn_hidden_size, 320);
}

TEST(ResolveModel, LayerFrequencyCountsFromTheFirstLayer) {
  const auto layers = [](const ArgValue& freq) {
    return resolve(with(with(least(), experts()), {{"moe_layer_freq", freq}}))->config.moe_layers;
  };
  EXPECT_EQ(layers(i(1)), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(layers(i(3)), (std::vector<bool>{true, false, false, true}));
  EXPECT_THAT(failure(with(experts(), {{"moe_layer_freq", i(0)}})), HasSubstr("is not positive"));
  EXPECT_THAT(failure(with(experts(), {{"moe_layer_freq", list({1, 0})}})),
              HasSubstr("describes 2 layers, num_layers is 4"));
  EXPECT_THAT(failure(with(experts(), {{"moe_layer_freq", list({1, 0, 2, 1})}})), HasSubstr("holds 2"));
}

TEST(ResolveModel, RulesOfTheRouterAreEnforced) {
  EXPECT_THAT(failure(with(experts(), {{"moe_router_topk", i(9)}})), HasSubstr("moe.topk 9 of 8 experts"));
  EXPECT_THAT(failure(with(experts(), {{"moe_router_topk", i(1)}})), HasSubstr("needs --moe-router-pre-softmax"));
  EXPECT_EQ(failure(with(experts(), {{"moe_router_topk", i(1)}, {"moe_router_pre_softmax", b(true)}})), "ok");
  EXPECT_THAT(failure(with(experts(), {{"moe_router_enable_expert_bias", b(true)}})),
              HasSubstr("needs --moe-router-score-function sigmoid"));
  EXPECT_THAT(failure(with(experts(), {{"moe_router_group_topk", i(2)}})), HasSubstr("needs --moe-router-num-groups"));
  EXPECT_THAT(failure(with(experts(), {{"add_bias_linear", b(true)}, {"moe_shared_expert_intermediate_size", i(8)}})),
              HasSubstr("needs --disable-bias-linear"));
  EXPECT_THAT(failure(with(experts(), {{"swiglu", b(false)}, {"add_bias_linear", b(true)}})),
              HasSubstr("--no-bias-gelu-fusion"));
  EXPECT_EQ(failure({{"num_experts", i(0)}}), "ok");
}

TEST(ResolveModel, WhatIsMissingIsNamed) {
  for (const char* name : {"num_layers", "hidden_size", "num_attention_heads", "max_position_embeddings"}) {
    ArgRecord record = least();
    record.erase(name);
    EXPECT_THAT(resolve(record).status().message(), HasSubstr("is missing")) << name;
  }
  EXPECT_THAT(failure({{"hidden_size", i(190)}}), HasSubstr("hidden_size 190 is no multiple of num_attention_heads 4"));
  EXPECT_THAT(failure({{"num_attention_heads", i(0)}}), HasSubstr("num_attention_heads 0"));
  EXPECT_THAT(failure({{"num_layers", i(1ll << 40)}}), HasSubstr("num_layers: 1099511627776 is given"));
  EXPECT_THAT(failure({{"num_layers", i(-1)}}), HasSubstr("num_layers -1"));
  EXPECT_THAT(failure({{"swiglu", s("yes")}}), HasSubstr("swiglu: yes is given, True or False is expected"));
}

struct Unsupported {
  const char* name;
  ArgValue value;
  const char* message;
};

TEST(ResolveModel, WhatCannotBeComputedIsRefusedByNameAndValue) {
  const Unsupported cases[] = {
      {"fp16", b(true), "--fp16 True"},
      {"fp8", s("hybrid"), "--fp8-format hybrid"},
      {"softmax_type", s("learnable"), "--softmax-type learnable"},
      {"window_size", list({127, 0}), "--window-size [127, 0]"},
      {"position_embedding_type", s("yarn"), "--position-embedding-type yarn"},
      {"position_embedding_type", s("mrope"), "--position-embedding-type mrope"},
      {"multi_latent_attention", b(true), "--multi-latent-attention True"},
      {"quick_geglu", b(true), "--quick-geglu True"},
      {"glu_linear_offset", d(1), "--glu-linear-offset 1"},
      {"activation_func_clamp_value", d(7), "--activation-func-clamp-value 7"},
      {"hybrid_layer_pattern", s("M-M*"), "--hybrid-layer-pattern M-M*"},
      {"num_speculative_tokens", i(2), "--num-speculative-tokens 2"},
      {"moe_router_load_balancing_type", s("sinkhorn"), "--moe-router-load-balancing-type sinkhorn"},
      {"moe_router_score_function", s("sqrtsoftplus"), "--moe-router-score-function sqrtsoftplus"},
      {"moe_expert_capacity_factor", d(1), "--moe-expert-capacity-factor 1"},
      {"moe_latent_size", i(64), "--moe-latent-size 64"},
      {"use_rope_scaling", b(true), "--use-rope-scaling True"},
      {"fp32_residual_connection", b(true), "--fp32-residual-connection True"},
      {"context_parallel_size", i(2), "--context-parallel-size 2"}};
  for (const Unsupported& one : cases) {
    const auto model = resolve(with(least(), {{one.name, one.value}}));
    ASSERT_FALSE(model.ok()) << one.name;
    EXPECT_EQ(model.status().code(), StatusCode::kUnsupported) << one.name;
    EXPECT_THAT(model.status().message(), HasSubstr(std::string(one.message) + " (from the arguments)"));
    EXPECT_THAT(model.status().message(), HasSubstr("supported: "));
  }
}

TEST(ResolveModel, HarmlessValuesOfTheSameArgumentsPass) {
  ArgList losses;
  losses.push_back(s("seq_aux_loss"));
  losses.push_back(s("global_aux_loss"));
  EXPECT_EQ(failure({{"softmax_type", s("vanilla")},
                     {"window_size", none()},
                     {"glu_linear_offset", d(0)},
                     {"no_rope_freq", list({0, 0, 0, 0})},
                     {"rope_type", s("rope")},
                     {"spec", ArgValue{ArgList{}}},
                     {"moe_router_load_balancing_type", ArgValue{losses}},
                     {"context_parallel_size", i(1)}}),
            "ok");
}

ArgRecord checkpoint() {
  return with(least(), {{"swiglu", b(true)},
                        {"rotary_base", i(1000000)},
                        {"position_embedding_type", s("rope")},
                        {"normalization", s("RMSNorm")},
                        {"disable_bias_linear", b(true)},
                        {"add_bias_linear", b(true)},
                        {"ffn_hidden_size", i(500)},
                        {"kv_channels", i(32)},
                        {"group_query_attention", b(true)},
                        {"num_query_groups", i(2)},
                        {"untie_embeddings_and_output_weights", b(true)},
                        {"num_experts", i(8)},
                        {"moe_ffn_hidden_size", i(40)},
                        {"moe_router_topk", i(3)},
                        {"moe_layer_freq", list({0, 1, 1, 1})},
                        {"layernorm_epsilon", d(1e-6)},
                        {"padded_vocab_size", i(1152)},
                        {"tiktoken_pattern", s("v1")},
                        {"tokenizer_type", s("NullTokenizer")},
                        {"spec", none()},
                        {"attention_backend", ArgValue{Opaque{"AttnBackend"}}}});
}

TEST(CheckpointArgs, ForcedNamesReplaceOthersFillUp) {
  const ArgRecord stored = checkpoint();
  const ArgRecord given = with(least(), {{"use_checkpoint_args", b(true)},
                                         {"rotary_base", i(5)},
                                         {"ffn_hidden_size", i(640)},
                                         {"num_experts", i(64)},
                                         {"moe_ffn_hidden_size", i(7)}});
  const auto model = resolve(given, &stored);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->config.rotary_base, 1e6);
  EXPECT_EQ(model->config.ffn_hidden_size, 640);
  EXPECT_EQ(model->config.kv_channels, 32);
  EXPECT_EQ(model->config.num_query_groups, 2);
  EXPECT_EQ(model->config.norm, Norm::kRmsNorm);
  EXPECT_FALSE(model->config.linear_bias);
  EXPECT_FALSE(model->config.tied_embeddings);
  EXPECT_EQ(model->config.vocab_size, 1152);
  EXPECT_EQ(model->config.moe.experts, 8);
  EXPECT_EQ(model->config.moe.ffn_hidden_size, 40);
  EXPECT_EQ(model->config.moe.topk, 3);
  EXPECT_EQ(model->config.moe_layers, (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(model->config.norm_epsilon, 1e-5);
  EXPECT_EQ(origin(*model, "rotary_base"), "1000000.0 checkpoint rotary_base");
  ASSERT_EQ(model->notes.size(), 1u);
  EXPECT_THAT(model->notes[0], HasSubstr("layernorm_epsilon 1e-06, which Megatron-LM does not restore: 1e-05 is used"));
}

TEST(CheckpointArgs, NothingIsRestoredUnlessAskedFor) {
  const ArgRecord stored = checkpoint();
  const auto model = resolve(least(), &stored);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->config.activation, Activation::kGeluTanh);
  EXPECT_EQ(model->config.rotary_base, 10000);
}

TEST(CheckpointArgs, SizesThatDisagreeAreBothNamed) {
  ArgRecord stored = checkpoint();
  stored["num_layers"] = i(5);
  const ArgRecord given = with(least(), {{"use_checkpoint_args", b(true)}});
  EXPECT_THAT(resolve(given, &stored).status().message(),
              HasSubstr("num_layers 4 is given, but the checkpoint was written with 5"));
  EXPECT_THAT(resolve(least(), &stored).status().message(), HasSubstr("num_layers 4 is given"));
  stored = checkpoint();
  stored["num_attention_heads"] = none();
  EXPECT_TRUE(resolve(given, &stored).ok());
}

TEST(CheckpointArgs, SizesMayComeFromTheCheckpointAlone) {
  const ArgRecord stored = checkpoint();
  const auto model = resolve({{"use_checkpoint_args", b(true)}}, &stored);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(origin(*model, "num_layers"), "4 checkpoint num_layers");
}

TEST(CheckpointArgs, ADenseCheckpointClearsTheExpertWidth) {
  ArgRecord stored = checkpoint();
  stored["num_experts"] = none();
  const ArgRecord given =
      with(with(least(), experts()),
           {{"use_checkpoint_args", b(true)}, {"moe_ffn_hidden_size", i(7)}, {"ffn_hidden_size", i(99)}});
  EXPECT_EQ(resolve(given, &stored)->config.moe.ffn_hidden_size, 99);
}

TEST(CheckpointArgs, TheTokenizerIsRestoredUnlessSwitchedOff) {
  const ArgRecord stored = checkpoint();
  ArgRecord given = {
      {"use_checkpoint_args", b(true)}, {"tokenizer_type", s("TikTokenizer")}, {"tiktoken_pattern", s("v2")}};
  EXPECT_EQ(to_text(apply_checkpoint_args(given, &stored).at("tokenizer_type").value), "NullTokenizer");
  given["use_tokenizer_model_from_checkpoint_args"] = b(false);
  EXPECT_EQ(to_text(apply_checkpoint_args(given, &stored).at("tokenizer_type").value), "TikTokenizer");
  EXPECT_EQ(to_text(apply_checkpoint_args(given, &stored).at("tiktoken_pattern").value), "v1");
}

TEST(CheckpointArgs, ArchitectureThatWouldBeWrongWithoutASignIsRefused) {
  const Unsupported cases[] = {{"multi_latent_attention", b(true), "--multi-latent-attention True"},
                               {"softmax_type", s("off-by-one"), "--softmax-type off-by-one"},
                               {"window_size", list({7, 0}), "--window-size"},
                               {"use_rope_scaling", b(true), "--use-rope-scaling"},
                               {"moe_latent_size", i(5), "--moe-latent-size 5"},
                               {"apply_residual_connection_post_layernorm", b(true), "--apply-residual"},
                               {"fp32_residual_connection", b(true), "--fp32-residual-connection"},
                               {"hybrid_override_pattern", s("M*"), "--hybrid-"},
                               {"spec", ArgValue{ArgList{s("mod"), s("fn")}}, "--spec [mod, fn]"}};
  for (const Unsupported& one : cases) {
    for (const bool restore : {true, false}) {
      const ArgRecord stored = with(checkpoint(), {{one.name, one.value}});
      const auto model = resolve(with(least(), {{"use_checkpoint_args", b(restore)}}), &stored);
      ASSERT_FALSE(model.ok()) << one.name;
      EXPECT_EQ(model.status().code(), StatusCode::kUnsupported) << one.name;
      EXPECT_THAT(model.status().message(), HasSubstr(one.message));
      EXPECT_THAT(model.status().message(), HasSubstr("from the checkpoint's arguments"));
    }
  }
  const ArgRecord gated = with(checkpoint(), {{"swiglu", b(false)}, {"gated_linear_unit", b(true)}});
  EXPECT_THAT(failure({}, &gated), HasSubstr("gated_linear_unit without swiglu"));
}

TEST(CheckpointArgs, ValuesThatOnlyTrainingUsedAreNoObstacle) {
  const ArgRecord stored = with(checkpoint(), {{"fp16", b(true)},
                                               {"fp8", s("hybrid")},
                                               {"moe_expert_capacity_factor", d(1.25)},
                                               {"context_parallel_size", i(4)}});
  const auto model = resolve(with(least(), {{"use_checkpoint_args", b(true)}}), &stored);
  EXPECT_TRUE(model.ok()) << model.status().message();
}

TEST(CheckpointArgs, AValueOfAWrongTypeIsNamed) {
  const ArgRecord stored = with(checkpoint(), {{"rotary_base", s("big")}});
  EXPECT_THAT(failure({{"use_checkpoint_args", b(true)}}, &stored),
              HasSubstr("checkpoint rotary_base: big is given, a finite number"));
  const ArgRecord opaque = with(checkpoint(), {{"normalization", ArgValue{Opaque{"Norm"}}}});
  EXPECT_THAT(failure({{"use_checkpoint_args", b(true)}}, &opaque), HasSubstr("normalization: <Norm> is given"));
}

}  // namespace
}  // namespace assay::model
