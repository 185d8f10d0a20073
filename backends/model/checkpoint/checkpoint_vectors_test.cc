// Checkpoints that Megatron-LM wrote; the expected numbers come from an independent decoder.
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <map>

#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/crc32.h"
#include "backends/model/checkpoint/describe.h"

namespace assay::model {
namespace {

using ::testing::HasSubstr;

const std::string kShared = ASSAY_SOURCE_DIR "/../shared";

class CheckpointVectors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kShared + "/vectors")) GTEST_SKIP() << "the shared vectors are not beside the tree";
  }

  static std::unique_ptr<Checkpoint> open(const std::string& name) {
    Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(kShared + "/" + name);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
  }

  // One element, by leading indices for all axes.
  static float element(const Checkpoint& checkpoint, const std::string& key, const std::vector<int64_t>& index) {
    float value = 0;
    const Status status = checkpoint.read(key, index, Dtype::kFloat32, &value);
    EXPECT_TRUE(status.ok()) << status.message();
    return value;
  }

  static uint32_t crc_of_whole(const Checkpoint& checkpoint, const std::string& key) {
    const TensorInfo* tensor = checkpoint.contents().find(key);
    if (tensor == nullptr) return 0;
    std::vector<std::byte> data(tensor->bytes());
    const Status status = checkpoint.read(key, {}, tensor->dtype, data.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return crc32(data);
  }
};

constexpr const char* kFc1 = "decoder.layers.mlp.experts.experts.linear_fc1.weight";
constexpr const char* kFc2 = "decoder.layers.mlp.experts.experts.linear_fc2.weight";
constexpr const char* kRouter = "decoder.layers.mlp.router.weight";
constexpr const char* kEmbedding = "embedding.word_embeddings.weight";

TEST_F(CheckpointVectors, WholeTensorsHaveTheBytesOfAnIndependentDecoder) {
  const std::map<std::string, std::map<std::string, uint32_t>> expected = {
      {"gold",
       {{kFc1, 0x921574f1U},
        {kFc2, 0xd321f5dbU},
        {kRouter, 0x46077a5cU},
        {kEmbedding, 0x359dad61U},
        {"output_layer.weight", 0xb35c38dcU},
        {"decoder.final_layernorm.weight", 0x2cad71aeU}}},
      {"vectors/dense_gqa_relu2", {{"decoder.layers.mlp.linear_fc1.weight", 0xf7ad1e4aU}, {kEmbedding, 0x4bf4abb1U}}},
      {"vectors/moe_mixed",
       {{"decoder.layers.2.mlp.experts.experts.linear_fc1.weight", 0xb6b106daU},
        {"decoder.layers.0.mlp.linear_fc1.weight", 0x8fcad169U}}},
      {"vectors/moe_sigmoid", {{kFc1, 0x3936c821U}, {kRouter, 0x5eb5a76aU}, {kEmbedding, 0xb705cdc4U}}},
      {"vectors/moe_sigmoid_sharded", {{kFc1, 0x3936c821U}, {kRouter, 0x5eb5a76aU}, {kEmbedding, 0xb705cdc4U}}},
      {"vectors/moe_sigmoid_bf16", {{kFc1, 0x15119defU}, {kRouter, 0x4c5406bcU}, {kEmbedding, 0xd0e2b2abU}}},
  };
  for (const auto& [name, tensors] : expected) {
    const auto checkpoint = open(name + "/checkpoint");
    ASSERT_NE(checkpoint, nullptr);
    for (const auto& [key, crc] : tensors) EXPECT_EQ(crc_of_whole(*checkpoint, key), crc) << name << " " << key;
    EXPECT_TRUE(checkpoint->verify().ok()) << checkpoint->verify().message();
  }
}

TEST_F(CheckpointVectors, SingleElementsAreFoundThroughLeadingIndices) {
  const auto gold = open("gold/checkpoint");
  ASSERT_NE(gold, nullptr);
  EXPECT_EQ(element(*gold, kEmbedding, {0, 0}), -0.0218505859375F);
  EXPECT_EQ(element(*gold, kEmbedding, {4095, 255}), -0.052734375F);
  EXPECT_EQ(element(*gold, kFc1, {3, 63, 63, 255}), 0.0888671875F);
  EXPECT_EQ(element(*gold, kFc2, {2, 17, 100, 5}), 0.008056640625F);
  const auto sharded = open("vectors/moe_sigmoid_sharded/checkpoint");
  ASSERT_NE(sharded, nullptr);
  EXPECT_EQ(element(*sharded, kFc1, {2, 7, 95, 63}), -0.047999557107686996F);
  EXPECT_EQ(element(*sharded, kFc1, {1, 3, 50, 20}), -0.1644825041294098F);
  EXPECT_EQ(element(*sharded, kRouter, {2, 5, 33}), -0.14157240092754364F);
}

TEST_F(CheckpointVectors, SlicesAndRowRangesArePartsOfTheWhole) {
  const auto checkpoint = open("vectors/moe_sigmoid_sharded/checkpoint");
  ASSERT_NE(checkpoint, nullptr);
  std::vector<float> whole(3 * 8 * 96 * 64);
  ASSERT_TRUE(checkpoint->read(kFc1, {}, Dtype::kFloat32, whole.data()).ok());
  const auto slice_begin = whole.begin() + (1 * 8 + 6) * 96 * 64;
  std::vector<float> expert(96 * 64);
  ASSERT_TRUE(checkpoint->read(kFc1, std::array<int64_t, 2>{1, 6}, Dtype::kFloat32, expert.data()).ok());
  EXPECT_TRUE(std::equal(expert.begin(), expert.end(), slice_begin));
  std::vector<float> rows(48 * 64);
  ASSERT_TRUE(checkpoint->read(kFc1, std::array<int64_t, 2>{1, 6}, Dtype::kFloat32, rows.data(), {20, 68}).ok());
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), slice_begin + 20 * 64));
}

TEST_F(CheckpointVectors, ArgumentsComeFromCommonPtAndFromCommonState) {
  for (const char* name : {"vectors/moe_sigmoid_sharded", "vectors/moe_sigmoid"}) {
    const auto checkpoint = open(std::string(name) + "/checkpoint");
    ASSERT_NE(checkpoint, nullptr);
    Result<ArgRecord> args = checkpoint->args();
    ASSERT_TRUE(args.ok()) << args.status().message();
    EXPECT_GT(args->size(), 800U);
    EXPECT_EQ(std::get<int64_t>(args->at("num_layers").value), 3);
    EXPECT_EQ(std::get<std::string>(args->at("normalization").value), "RMSNorm");
    EXPECT_EQ(std::get<bool>(args->at("swiglu").value), true);
    EXPECT_EQ(std::get<double>(args->at("rotary_percent").value), 1.0);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(args->at("mtp_num_layers").value));
    EXPECT_EQ(std::get<Opaque>(args->at("params_dtype").value).text, "torch.float32");
    EXPECT_EQ(std::get<Opaque>(args->at("attention_backend").value).text,
              "megatron.core.transformer.enums.AttnBackend");
  }
}

TEST_F(CheckpointVectors, TheTableNamesShapesAndTotals) {
  const auto checkpoint = open("gold/checkpoint");
  ASSERT_NE(checkpoint, nullptr);
  Result<std::string> text = render_checkpoint_text(*checkpoint);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("[4, 64, 64, 256]  bfloat16     512         8388608"));
  EXPECT_THAT(*text, HasSubstr("total: 12 tensors, 9701632 parameters, 19403264 bytes; 530 objects"));
  EXPECT_THAT(*text, HasSubstr("num_experts = 64"));
  Result<std::string> json = render_checkpoint_json(*checkpoint);
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, HasSubstr("\"parameters\": 9701632"));
}

TEST_F(CheckpointVectors, AnIterationFolderOpensAsWell) {
  const auto checkpoint = open("gold/checkpoint/iter_0000001/");
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->contents().iteration, 1);
  EXPECT_EQ(checkpoint->contents().tensors.size(), 12U);
}

TEST_F(CheckpointVectors, ReadsThatCannotBeServedNameTheKey) {
  const auto checkpoint = open("gold/checkpoint");
  ASSERT_NE(checkpoint, nullptr);
  float value = 0;
  EXPECT_EQ(checkpoint->read("no.such", {}, Dtype::kFloat32, &value).code(), StatusCode::kNotFound);
  EXPECT_THAT(checkpoint->read(kRouter, std::array<int64_t, 1>{4}, Dtype::kFloat32, &value).message(),
              HasSubstr("'decoder.layers.mlp.router.weight' of shape [4, 64, 256]: no index 4 on axis 0"));
  EXPECT_THAT(checkpoint->read(kRouter, {}, Dtype::kFloat32, &value, {60, 70}).message(),
              HasSubstr("no rows [60, 70)"));
}

}  // namespace
}  // namespace assay::model
