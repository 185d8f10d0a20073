// What the writer writes, the reader reads: every chunking, dtype, residue and stride.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/convert.h"
#include "backends/model/checkpoint/model_writer.h"

namespace assay::model {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class RoundTrip : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(ASSAY_BINARY_DIR) / "tests" / "scratch" / (std::string("round_trip_") + info->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Checkpoint> open() const {
    Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(folder_.string());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
  }

  fs::path folder_;
};

// Element i of a test tensor: exact in all three dtypes for i below 256.
float ramp(int64_t i) { return static_cast<float>(i % 251) - 100.0F; }

TensorToWrite ramp_tensor(std::vector<int64_t> shape, Dtype dtype, std::vector<int64_t> counts) {
  const auto fill = [dtype](int64_t first, int64_t count, void* out) {
    for (int64_t i = 0; i < count; ++i) {
      const float value = ramp(first + i);
      convert_elements(reinterpret_cast<const std::byte*>(&value), Dtype::kFloat32,
                       static_cast<std::byte*>(out) + static_cast<size_t>(i) * dtype_size(dtype), dtype, 1);
    }
  };
  return {"w", std::move(shape), dtype, std::move(counts), fill};
}

TEST_F(RoundTrip, EveryChunkingDtypeResidueAndStrideReadsTheSame) {
  const std::vector<int64_t> shape = {3, 5, 7};
  const std::vector<std::vector<int64_t>> chunkings = {{},        {3, 1, 1}, {1, 5, 1}, {1, 1, 7},
                                                       {2, 3, 4}, {1, 2, 3}, {3, 5, 7}};
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
    for (const auto& counts : chunkings) {
      for (const bool reversed : {false, true}) {
        const WriteOptions options{
            .files = 3, .residue = static_cast<int>(counts.size() + 4) * 3 % 64, .reversed_strides = reversed};
        ASSERT_TRUE(write_torch_dist(folder_.string(), {ramp_tensor(shape, dtype, counts)}, {}, options).ok());
        const auto checkpoint = open();
        ASSERT_NE(checkpoint, nullptr);
        std::vector<float> whole(3 * 5 * 7);
        const Status status = checkpoint->read("w", {}, Dtype::kFloat32, whole.data());
        ASSERT_TRUE(status.ok()) << status.message();
        for (int64_t i = 0; i < 105; ++i) ASSERT_EQ(whole[static_cast<size_t>(i)], ramp(i)) << i;
        std::vector<float> rows(2 * 7);
        ASSERT_TRUE(checkpoint->read("w", std::array<int64_t, 1>{2}, Dtype::kFloat32, rows.data(), {2, 4}).ok());
        for (int64_t i = 0; i < 14; ++i) ASSERT_EQ(rows[static_cast<size_t>(i)], ramp(2 * 35 + 2 * 7 + i)) << i;
      }
    }
  }
}

TEST_F(RoundTrip, ACheckpointThatWasReplacedHalfWayIsNone) {
  const TensorToWrite tensor = ramp_tensor({4, 8}, Dtype::kFloat32, {2, 1});
  ASSERT_TRUE(write_torch_dist(folder_.string(), {tensor}, {}, {.files = 2}).ok());
  const fs::path path = folder_ / "iter_0000001";
  fs::remove(path / "__1_0.distcp");
  fs::create_directory(path / "__1_0.distcp");  // cannot be written
  EXPECT_THAT(write_torch_dist(folder_.string(), {tensor}, {}, {.files = 2}).message(), HasSubstr("__1_0.distcp"));
  fs::remove(path / "__1_0.distcp");
  fs::copy(path / "__0_0.distcp", path / "__1_0.distcp");
  EXPECT_FALSE(Checkpoint::open(folder_.string()).ok());
  ASSERT_TRUE(write_torch_dist(folder_.string(), {tensor}, {}, {.files = 2}).ok());
  EXPECT_TRUE(Checkpoint::open(folder_.string()).ok());
}

TEST_F(RoundTrip, TensorBytesLieAtTheResidueThatWasAsked) {
  const WriteOptions options{.files = 1, .residue = 13};
  ASSERT_TRUE(write_torch_dist(folder_.string(), {ramp_tensor({4}, Dtype::kFloat32, {2})}, {}, options).ok());
  std::ifstream file(folder_ / "iter_0000001" / "__0_0.distcp", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::array<float, 2> first = {ramp(0), ramp(1)};
  const size_t at = bytes.find(std::string_view(reinterpret_cast<const char*>(first.data()), sizeof(first)));
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(at % 64, 13U);
}

TEST_F(RoundTrip, ScalarsAndEmptyTensorsAreTensors) {
  TensorToWrite scalar = ramp_tensor({}, Dtype::kFloat32, {});
  TensorToWrite empty = ramp_tensor({0, 4}, Dtype::kFloat32, {});
  empty.key = "empty";
  ASSERT_TRUE(write_torch_dist(folder_.string(), {scalar, empty}, {}).ok());
  const auto checkpoint = open();
  ASSERT_NE(checkpoint, nullptr);
  float value = 0;
  ASSERT_TRUE(checkpoint->read("w", {}, Dtype::kFloat32, &value).ok());
  EXPECT_EQ(value, ramp(0));
  EXPECT_TRUE(checkpoint->read("empty", {}, Dtype::kFloat32, nullptr).ok());
  EXPECT_TRUE(checkpoint->verify().ok());
}

CheckpointSpec moe_spec() {
  CheckpointSpec spec;
  ModelConfig& model = spec.model;
  model.num_layers = 3;
  model.hidden_size = 32;
  model.ffn_hidden_size = 48;
  model.num_attention_heads = 4;
  model.num_query_groups = 2;
  model.kv_channels = 8;
  model.vocab_size = 100;
  model.max_position_embeddings = 64;
  model.norm = Norm::kRmsNorm;
  model.activation = Activation::kSwiglu;
  model.linear_bias = false;
  model.tied_embeddings = false;
  model.moe_layers = {true, true, true};
  model.moe = {.experts = 4, .topk = 2, .ffn_hidden_size = 24, .shared_ffn_hidden_size = 16, .expert_bias = true};
  return spec;
}

std::vector<float> read_all(const Checkpoint& checkpoint, const std::string& key) {
  const TensorInfo* tensor = checkpoint.contents().find(key);
  EXPECT_NE(tensor, nullptr) << key;
  if (tensor == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(tensor->elements()));
  const Status status = checkpoint.read(key, {}, Dtype::kFloat32, values.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

constexpr const char* kExpertFc1 = "decoder.layers.mlp.experts.experts.linear_fc1.weight";

TEST_F(RoundTrip, WeightsDependOnTheSeedAloneAndNotOnChunksFilesOrDtype) {
  CheckpointSpec spec = moe_spec();
  spec.dtype = Dtype::kFloat32;
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  const std::vector<float> first = read_all(*open(), kExpertFc1);
  spec.write = {.files = 4, .common_pt = true, .residue = 5, .reversed_strides = true};
  spec.chunks = {{"*linear_fc1*", -1, 3}, {"*", 0, 2}};
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  EXPECT_EQ(read_all(*open(), kExpertFc1), first);
  spec.dtype = Dtype::kBfloat16;
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  const std::vector<float> brain = read_all(*open(), kExpertFc1);
  for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(brain[i], bf16_to_float(float_to_bf16(first[i])));
  spec.seed = 2;
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  EXPECT_NE(read_all(*open(), kExpertFc1), brain);
}

TEST_F(RoundTrip, WeightsAreNormalAndGammasLieAroundOne) {
  CheckpointSpec spec = moe_spec();
  spec.std = 0.5;
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  const auto checkpoint = open();
  double sum = 0;
  double squares = 0;
  const std::vector<float> weights = read_all(*checkpoint, kExpertFc1);
  for (float w : weights) {
    sum += w;
    squares += double{w} * w;
  }
  const auto count = static_cast<double>(weights.size());  // 18,432: standard errors 0.0037 and 0.0026
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / count), 0.5, 0.015);
  double gammas = 0;
  for (float g : read_all(*checkpoint, "decoder.layers.self_attention.linear_qkv.layer_norm_weight")) gammas += g;
  EXPECT_NEAR(gammas / 96, 1.0, 0.25);
}

TEST_F(RoundTrip, WhatIsAddedToTheResidualMayHaveAStandardDeviationOfItsOwn) {
  CheckpointSpec spec = moe_spec();
  spec.std = 0.5;
  spec.residual_std = 0.125;
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  const auto checkpoint = open();
  const auto deviation = [&](const std::string& key) {
    double squares = 0;
    const std::vector<float> weights = read_all(*checkpoint, key);
    for (const float w : weights) squares += double{w} * w;
    return std::sqrt(squares / static_cast<double>(weights.size()));
  };
  const std::string layers = "decoder.layers.";
  for (const char* key : {"mlp.experts.experts.linear_fc2.weight", "self_attention.linear_proj.weight"}) {
    EXPECT_NEAR(deviation(layers + key), 0.125, 0.01) << key;
  }
  EXPECT_NEAR(deviation(kExpertFc1), 0.5, 0.015);
  EXPECT_NEAR(deviation(layers + "self_attention.linear_qkv.weight"), 0.5, 0.03);
}

TEST_F(RoundTrip, ArgumentsComeBackFromBothPlaces) {
  for (const bool common_pt : {true, false}) {
    CheckpointSpec spec = moe_spec();
    spec.model.moe_layers = {false, true, true};
    spec.write.common_pt = common_pt;
    ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
    const auto checkpoint = open();
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_EQ(checkpoint->contents().objects.size(), common_pt ? 0U : 1U);
    Result<ArgRecord> args = checkpoint->args();
    ASSERT_TRUE(args.ok()) << args.status().message();
    const ArgRecord expected = model_args(spec);
    EXPECT_EQ(args->size(), expected.size());
    EXPECT_EQ(std::get<int64_t>(args->at("num_query_groups").value), 2);
    EXPECT_EQ(std::get<bool>(args->at("swiglu").value), true);
    EXPECT_EQ(std::get<Opaque>(args->at("params_dtype").value).text, "torch.float32");
    const ArgList& pattern = std::get<ArgList>(args->at("moe_layer_freq").value);
    ASSERT_EQ(pattern.size(), 3U);
    EXPECT_EQ(std::get<int64_t>(pattern[0].value), 0);
    EXPECT_EQ(std::get<int64_t>(pattern[2].value), 1);
    EXPECT_NE(checkpoint->contents().find("decoder.layers.0.mlp.linear_fc1.weight"), nullptr);
    EXPECT_NE(checkpoint->contents().find("decoder.layers.2.mlp.router.expert_bias"), nullptr);
  }
}

TEST_F(RoundTrip, KeysFollowTheArchitecture) {
  CheckpointSpec spec = moe_spec();
  spec.te_names = true;
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  const auto te = open();
  EXPECT_EQ(te->contents().find("decoder.layers.pre_mlp_layernorm.weight")->shape, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(te->contents().find(kExpertFc1)->shape, (std::vector<int64_t>{3, 4, 48, 32}));
  EXPECT_EQ(te->contents().find(kExpertFc1)->chunks.size(), 24U);
  spec.model.moe_layers = {false, false, false};
  spec.model.linear_bias = true;
  spec.model.norm = Norm::kLayerNorm;
  spec.model.positions = Positions::kLearnedAbsolute;
  spec.model.tied_embeddings = true;
  spec.model.qk_layernorm = true;
  spec.write.iteration = -1;
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  const auto dense = open();
  const CheckpointContents& contents = dense->contents();
  EXPECT_EQ(contents.iteration, -1);
  EXPECT_THAT(contents.path, HasSubstr("release"));
  EXPECT_EQ(contents.find("decoder.layers.self_attention.linear_qkv.bias")->shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(contents.find("decoder.layers.mlp.linear_fc1.bias")->shape, (std::vector<int64_t>{3, 96}));
  EXPECT_EQ(contents.find("decoder.layers.self_attention.q_layernorm.bias")->shape, (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(contents.find("embedding.position_embeddings.weight")->shape, (std::vector<int64_t>{64, 32}));
  EXPECT_EQ(contents.find("output_layer.weight"), nullptr);
}

TEST_F(RoundTrip, ConcurrentReadersSeeTheSameBytes) {
  CheckpointSpec spec = moe_spec();
  spec.default_chunks = false;  // one chunk: all threads need its CRC at once
  ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
  const auto checkpoint = open();
  const std::vector<float> expected = read_all(*open(), kExpertFc1);
  std::vector<float> seen(expected.size());
  std::vector<std::thread> threads;
  for (int64_t expert = 0; expert < 4; ++expert) {
    threads.emplace_back([&, expert] {
      for (int64_t layer = 0; layer < 3; ++layer) {
        float* out = seen.data() + (layer * 4 + expert) * 48 * 32;
        const Status status = checkpoint->read(kExpertFc1, std::array<int64_t, 2>{layer, expert}, Dtype::kFloat32, out);
        EXPECT_TRUE(status.ok()) << status.message();
        checkpoint->drop_pages();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, expected);
}

TEST_F(RoundTrip, TheWriterRefusesImpossibleModels) {
  CheckpointSpec spec = moe_spec();
  spec.model.num_query_groups = 3;
  EXPECT_THAT(write_checkpoint(spec, folder_.string()).message(), HasSubstr("4 attention heads"));
  spec = moe_spec();
  spec.model.moe.topk = 5;
  EXPECT_THAT(write_checkpoint(spec, folder_.string()).message(), HasSubstr("top-5"));
  spec = moe_spec();
  spec.write.files = 0;
  EXPECT_THAT(write_checkpoint(spec, folder_.string()).message(), HasSubstr("0 data files"));
}

}  // namespace
}  // namespace assay::model
