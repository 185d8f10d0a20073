// Bytes and operations against sums made by hand.
#include "tools/bench/work.h"

#include <gtest/gtest.h>

namespace assay::bench {
namespace {

// Megatron-LM's 16B case: 27 mixtures.
model::ModelConfig sixteen_b() {
  model::ModelConfig config;
  config.num_layers = 27;
  config.hidden_size = 2048;
  config.num_attention_heads = config.num_query_groups = 16;
  config.kv_channels = 128;
  config.vocab_size = 131072;
  config.norm = model::Norm::kRmsNorm;
  config.activation = model::Activation::kSwiglu;
  config.tied_embeddings = false;
  config.linear_bias = false;
  config.arithmetic = model::Arithmetic::kBf16;
  config.moe_layers.assign(27, true);
  config.moe = {.experts = 64, .topk = 6, .ffn_hidden_size = 1408, .shared_ffn_hidden_size = 2816};
  return config;
}

TEST(Work, ParametersOfTheSixteenBillionModel) { EXPECT_EQ(parameters(sixteen_b()), 16409147392u); }

TEST(Work, AStepOfOneTokenReadsItsExpertsTheSharedOneAndTheOutputLayer) {
  const StepWork work = decode_work(sixteen_b(), 2, 1, 127, 6);
  const double layer = 2.0 * 2048 * (4 * 2048 + 64 + 3 * 2816 + 6 * 3 * 1408);
  EXPECT_DOUBLE_EQ(work.weight_bytes, 27 * layer + 2.0 * 131072 * 2048);
  EXPECT_DOUBLE_EQ(work.cache_bytes, 128.0 * 2 * 2048 * 2 * 27);
  EXPECT_NEAR(work.bytes(), 5.22e9, 0.03e9);
}

TEST(Work, ManyTokensReadEveryExpertOnce) {
  const double all = decode_work(sixteen_b(), 2, 64, 127, 64).weight_bytes;
  const double one = decode_work(sixteen_b(), 2, 1, 127, 6).weight_bytes;
  EXPECT_DOUBLE_EQ(all - one, 27 * 2.0 * 58 * 3 * 1408 * 2048);
}

TEST(Work, ADenseModelWithTiedEmbeddings) {
  model::ModelConfig config;
  config.num_layers = 2;
  config.hidden_size = 8;
  config.ffn_hidden_size = 16;
  config.num_attention_heads = 2;
  config.num_query_groups = 1;
  config.kv_channels = 4;
  config.vocab_size = 100;
  config.max_position_embeddings = 10;
  config.positions = model::Positions::kLearnedAbsolute;
  const double layer = 8 * (2 * 8 + 2 * 4) + 2 * 16 * 8;
  EXPECT_EQ(parameters(config), static_cast<uint64_t>(2 * layer + 800 + 5 * 16 + 80));
  EXPECT_DOUBLE_EQ(decode_work(config, 4, 3, 4, 0).weight_bytes, 4 * (2 * layer + 800));
  EXPECT_DOUBLE_EQ(decode_work(config, 4, 3, 4, 0).cache_bytes, 3 * 5 * 2 * 4 * 4 * 2.0);
  EXPECT_DOUBLE_EQ(prefill_flops(config, 3), 2 * 3 * 2 * layer + 2 * 800 + 4 * 6 * 8 * 2.0);
}

}  // namespace
}  // namespace assay::bench
