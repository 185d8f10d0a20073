#include "backends/cuda/fast/supports.h"

#include <gtest/gtest.h>

namespace assay::cuda::fast {
namespace {

model::ModelConfig sixteen_billion() {
  model::ModelConfig config;
  config.num_layers = 27;
  config.hidden_size = 2048;
  config.ffn_hidden_size = 10944;
  config.num_attention_heads = config.num_query_groups = 16;
  config.kv_channels = 128;
  config.vocab_size = 131072;
  config.norm = model::Norm::kRmsNorm;
  config.activation = model::Activation::kSwiglu;
  config.linear_bias = false;
  config.arithmetic = model::Arithmetic::kBf16;
  config.moe_layers.assign(27, true);
  config.moe_layers[0] = false;
  config.moe.experts = 64;
  config.moe.topk = 6;
  config.moe.ffn_hidden_size = 1408;
  config.moe.shared_ffn_hidden_size = 2816;
  config.moe.score = model::RouterScore::kSigmoid;
  return config;
}

TEST(FastDecodeSupports, TheSixteenBillionMixture) { EXPECT_EQ(unsupported(sixteen_billion()), ""); }

TEST(FastDecodeSupports, NothingElse) {
  const auto reason = [](auto change) {
    model::ModelConfig config = sixteen_billion();
    change(config);
    EXPECT_FALSE(supports(config));
    return unsupported(config);
  };
  using Config = model::ModelConfig;
  EXPECT_EQ(reason([](Config& c) { c.hidden_size = 4096; }), "hidden size 4096, the fast decode step has 2048");
  EXPECT_EQ(reason([](Config& c) { c.moe.topk = 9; }), "top-k 9, the fast decode step has 1 .. 8");
  EXPECT_EQ(reason([](Config& c) { c.ffn_hidden_size = 10945; }),
            "MLP width 10945, the fast decode step has multiples of 64");
  reason([](Config& c) { c.arithmetic = model::Arithmetic::kFp32; });
  reason([](Config& c) { c.norm = model::Norm::kLayerNorm; });
  reason([](Config& c) { c.activation = model::Activation::kGeluErf; });
  reason([](Config& c) { c.linear_bias = true; });
  reason([](Config& c) { c.qkv_bias = true; });
  reason([](Config& c) { c.vocab_size = 131073; });
  reason([](Config& c) { c.kv_channels = 64; });
  reason([](Config& c) { c.num_attention_heads = 32; });
  reason([](Config& c) { c.num_query_groups = 1; });
  reason([](Config& c) { c.positions = model::Positions::kLearnedAbsolute; });
  reason([](Config& c) { c.rotary_interleaved = true; });
  reason([](Config& c) { c.rotary_percent = 0.5; });
  reason([](Config& c) { c.qk_layernorm = true; });
  reason([](Config& c) { c.moe.experts = 128; });
  reason([](Config& c) { c.moe.experts = 40; });
  reason([](Config& c) { c.moe.ffn_hidden_size = 1400; });
  reason([](Config& c) { c.moe.shared_ffn_hidden_size = 0; });
  reason([](Config& c) { c.moe.score = model::RouterScore::kSoftmax; });
  reason([](Config& c) { c.moe.groups = 8; });
  reason([](Config& c) { c.moe.shared_gate = true; });
  reason([](Config& c) { c.moe.router_bias = true; });
}

TEST(FastDecodeSupports, RouterOptionsOfADenseModelDoNotMatter) {
  model::ModelConfig config = sixteen_billion();
  config.moe_layers.assign(27, false);
  config.moe = {};
  EXPECT_EQ(unsupported(config), "");
}

}  // namespace
}  // namespace assay::cuda::fast
