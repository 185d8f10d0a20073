// Numbers that the device makes up: those of random_number(), wherever the layout puts them.
#include "backends/cuda/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cuda/cuda_model.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda {
namespace {

TEST(RandomNumber, HasMeanNoughtAndVarianceOneAndStreamsOfItsOwn) {
  constexpr uint64_t kCount = 200000;
  double sum = 0;
  double squares = 0;
  double together = 0;  // with the neighbouring stream
  for (uint64_t i = 0; i < kCount; ++i) {
    const double z = random_number(7, 3, i);
    sum += z;
    squares += z * z;
    together += z * random_number(7, 4, i);
    EXPECT_LE(std::abs(z), 3.4642);
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_NEAR(together / kCount, 0, 0.01);
  EXPECT_NE(random_number(7, 3, 0), random_number(8, 3, 0));
}

class RandomWeights : public OnDevice {};

TEST_F(RandomWeights, ATiledMatrixHoldsTheNumbersOfTheRowMajorOne) {
  for (const bool gated : {false, true}) {
    Matrix m{.rows = gated ? 48 : 37, .cols = 50, .number = Number::kBfloat16, .tiled = true, .gated = gated};
    const auto each = static_cast<size_t>(m.bytes());
    std::vector<uint16_t> poison(each, 0xffff);  // 2 matrices of `each` bytes
    const auto memory = upload(poison);
    m.data = memory.data();
    fill_random(RandomMatrices{m, 2, 0.02f, 5, 9}, nullptr);
    const std::vector<uint16_t> seen = download(memory);
    std::vector<uint16_t> wanted(each, 0);
    for (int e = 0; e < 2; ++e) {
      for (int tile = 0; tile < round_up(m.rows, kTile) / kTile; ++tile) {
        for (int r = 0; r < kTile; ++r) {
          const int row = tiled_row(m, tile, r);
          for (int col = 0; col < m.cols && row < m.rows; ++col) {
            const auto index = static_cast<uint64_t>((e * m.rows + row) * m.cols + col);
            wanted[static_cast<size_t>(e) * each / 2 +
                   static_cast<size_t>(tiled_index(tile * kTile + r, col, m.cols))] =
                arithmetic::to_bf16(0.02f * random_number(5, 9, index));
          }
        }
      }
    }
    EXPECT_TRUE(same_bits(seen, wanted)) << gated;
  }
}

TEST_F(RandomWeights, AVectorIsRoundedBeforeOneIsAdded) {
  DeviceBuffer<float> memory(300);
  RandomVector args{.to = memory.data(), .count = 300, .middle = 0, .scale = 0.02f, .rounded = true, .added = 1};
  args.seed = 4;
  fill_random(args, nullptr);
  std::vector<float> wanted;
  for (uint64_t i = 0; i < 300; ++i) wanted.push_back(arithmetic::round_bf16(0.02f * random_number(4, 0, i)) + 1.0f);
  EXPECT_TRUE(same_bits(download(memory), wanted));
}

TEST_F(RandomWeights, AModelOpensWithoutACheckpointAndItsSeedCounts) {
  model::ModelConfig config;
  config.num_layers = 2;
  config.hidden_size = 64;
  config.ffn_hidden_size = 128;
  config.num_attention_heads = config.num_query_groups = 4;
  config.kv_channels = 16;
  config.vocab_size = 300;
  config.max_position_embeddings = 64;
  config.linear_bias = false;
  config.tied_embeddings = false;
  config.activation = model::Activation::kSwiglu;
  config.moe_layers = {false, true};
  config.moe.experts = 8;
  config.moe.ffn_hidden_size = 32;
  std::vector<std::vector<float>> all;
  for (const char* options : {R"({"weights":"random"})", R"({"weights":"random:1"})", R"({"weights":"random:2"})"}) {
    const auto model = open_cuda(config, "", options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    ASSERT_EQ((*model)->notes().size(), 1u);
    auto cache = (*model)->make_cache({sizeof(assay_cache_spec), 16, 1, 0});
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    (*cache)->block_size = 16;
    (*cache)->block_count = 1;
    const std::vector<int32_t> ids{5, 6, 7};
    const int32_t block = 0;
    std::vector<float>& logits = all.emplace_back(300);
    assay_run run{};
    run.ids = ids.data();
    run.count = 3;
    run.blocks = &block;
    run.block_count = run.output_rows = 1;
    run.output.logits = logits.data();
    const Status status = (*model)->forward(**cache, {&run, 1}, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
  }
  EXPECT_TRUE(same_bits(all[0], all[1]));
  EXPECT_NE(all[0], all[2]);
}

}  // namespace
}  // namespace assay::cuda
