// Whatever the layout of the checkpoint: the device holds the rows that it has.
#include "backends/cuda/weight_upload.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "backends/cuda/cuda_model.h"
#include "backends/cuda/cuda_weights.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/model/checkpoint/model_writer.h"

namespace assay::cuda {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

model::CheckpointSpec mixture() {
  model::CheckpointSpec spec;
  model::ModelConfig& config = spec.model;
  config.num_layers = 3;
  config.hidden_size = 72;
  config.ffn_hidden_size = 100;
  config.num_attention_heads = config.num_query_groups = 3;
  config.kv_channels = 24;
  config.vocab_size = 200;
  config.max_position_embeddings = 64;
  config.norm = model::Norm::kRmsNorm;
  config.activation = model::Activation::kSwiglu;
  config.linear_bias = false;
  config.tied_embeddings = false;
  config.arithmetic = model::Arithmetic::kBf16;
  config.moe_layers = {true, true, true};
  config.moe.experts = 5;
  config.moe.topk = 2;
  config.moe.ffn_hidden_size = 40;
  config.moe.shared_ffn_hidden_size = 56;
  spec.write.files = 2;
  return spec;
}

class WeightUpload : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    folder_ = fs::temp_directory_path() / ("assay_weight_upload_" + std::to_string(::getpid()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<Weights> load(const model::CheckpointSpec& spec, int threads = 3) const {
    if (Status written = model::write_checkpoint(spec, folder_.string()); !written.ok()) return written;
    return load_written(spec, threads);
  }

  Result<Weights> load_written(const model::CheckpointSpec& spec, int threads) const {
    return on_device([&]() -> Result<Weights> {
      const auto checkpoint = model::Checkpoint::open(folder_.string());
      if (!checkpoint) return checkpoint.status();
      const Result<Device> device = find_device();
      if (!device) return device.status();
      return load_weights(**checkpoint, spec.model, *device, threads);
    });
  }

  fs::path folder_;
};

std::vector<std::byte> region_of(const Result<Weights>& weights) {
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  return weights.ok() ? download(weights->region) : std::vector<std::byte>();
}

TEST_F(WeightUpload, TilesHoldTheRowsOfTheCheckpoint) {
  const model::CheckpointSpec spec = mixture();
  const Result<Weights> weights = load(spec);
  const std::vector<std::byte> region = region_of(weights);
  ASSERT_FALSE(region.empty());
  const auto checkpoint = model::Checkpoint::open(folder_.string());
  const Matrix& experts = weights->layers[1].expert_fc1.weight;
  ASSERT_TRUE(experts.tiled && experts.gated);
  std::vector<uint16_t> rows(80 * 72);
  for (int64_t expert = 0; expert < 5; ++expert) {
    const std::array<int64_t, 2> place = {1, expert};
    ASSERT_TRUE(
        (*checkpoint)
            ->read("decoder.layers.mlp.experts.experts.linear_fc1.weight", place, model::Dtype::kBfloat16, rows.data())
            .ok());
    const auto* tiles = reinterpret_cast<const uint16_t*>(
        region.data() + (static_cast<const std::byte*>(experts.data) - weights->region.data()) +
        expert * experts.bytes());
    for (int tile = 0; tile < 5; ++tile) {
      for (int r = 0; r < kTile; ++r) {
        for (int col = 0; col < 72; ++col) {
          const uint16_t wanted = rows[static_cast<size_t>(tiled_row(experts, tile, r) * 72 + col)];
          ASSERT_EQ(tiles[tiled_index(tile * kTile + r, col, 72)], wanted) << expert << " " << tile << " " << r;
        }
      }
    }
  }
}

TEST_F(WeightUpload, EveryLayoutOfACheckpointGivesTheSameBytes) {
  model::CheckpointSpec spec = mixture();
  const std::vector<std::byte> expected = region_of(load(spec));
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(region_of(load(spec, 1)), expected);
  EXPECT_EQ(region_of(load(spec, 16)), expected);
  spec.write.reversed_strides = true;
  EXPECT_EQ(region_of(load(spec)), expected);
  spec.write = {.files = 5, .common_pt = true, .residue = 7};
  spec.default_chunks = false;  // whole stacked tensors
  EXPECT_EQ(region_of(load(spec)), expected);
  spec.chunks = {{"*weight", -1, 3}, {"*fc2*", 0, 2}, {"*fc1*", -2, 7}, {"*embeddings*", 0, 9}};
  EXPECT_EQ(region_of(load(spec)), expected);
}

TEST_F(WeightUpload, ACheckpointInFp32IsRoundedAsOneInBf16) {
  model::CheckpointSpec spec = mixture();
  const std::vector<std::byte> expected = region_of(load(spec));
  spec.dtype = model::Dtype::kFloat32;
  EXPECT_EQ(region_of(load(spec)), expected);
}

// The largest file's middle byte lies in tensor data.
TEST_F(WeightUpload, DamageIsNoticedAndNamesTheFileAndTheWeight) {
  model::CheckpointSpec spec = mixture();
  spec.write.files = 1;
  spec.default_chunks = false;
  ASSERT_TRUE(load(spec).ok());
  const fs::path path = folder_ / "iter_0000001" / "__0_0.distcp";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  char byte = 0;
  file.seekg(middle).get(byte);
  file.seekp(middle).put(static_cast<char>(byte ^ 1)).flush();
  const Result<Weights> weights = load_written(spec, 4);
  EXPECT_EQ(weights.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(weights.status().message(), HasSubstr("__0_0.distcp: 'decoder.layers."));
  EXPECT_THAT(weights.status().message(), HasSubstr("CRC-32"));
}

TEST_F(WeightUpload, ACacheThatDoesNotFitNamesNeededAndFreeBytesAndTheModelGoesOn) {
  const model::CheckpointSpec spec = mixture();
  ASSERT_TRUE(model::write_checkpoint(spec, folder_.string()).ok());
  const auto model = open_cuda(spec.model, folder_.string(), "{}");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const assay_cache_spec large{sizeof(assay_cache_spec), 4096, 1U << 27, 0};  // 237 TB each of keys and values
  const auto cache = (*model)->make_cache(large);
  EXPECT_EQ(cache.status().code(), StatusCode::kExhausted);
  EXPECT_THAT(cache.status().message(), HasSubstr("KV cache of 134217728 blocks of 4096 tokens"));
  EXPECT_THAT(cache.status().message(), HasSubstr("GB of device memory needed"));
  EXPECT_THAT(cache.status().message(), HasSubstr("are free"));
  const assay_cache_spec small{sizeof(assay_cache_spec), 16, 4, 0};
  EXPECT_TRUE((*model)->make_cache(small).ok());
}

}  // namespace
}  // namespace assay::cuda
