#include "backends/model/weights/weight_map.h"

#include <gmock/gmock.h>

namespace assay::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CheckpointContents contents_of(std::vector<std::pair<std::string, std::vector<int64_t>>> tensors) {
  CheckpointContents contents;
  contents.path = "ckpt";
  std::sort(tensors.begin(), tensors.end());
  for (auto& [key, shape] : tensors) {
    TensorInfo tensor;
    tensor.key = key;
    tensor.shape = shape;
    tensor.dtype = Dtype::kBfloat16;
    contents.tensors.push_back(tensor);
  }
  return contents;
}

ModelConfig dense() {
  ModelConfig config;
  config.num_layers = 2;
  config.hidden_size = 8;
  config.ffn_hidden_size = 12;
  config.num_attention_heads = 2;
  config.num_query_groups = 1;
  config.kv_channels = 4;
  config.vocab_size = 32;
  config.norm = Norm::kRmsNorm;
  config.activation = Activation::kSwiglu;
  config.linear_bias = false;
  config.tied_embeddings = false;
  config.moe_layers = {false, false};
  return config;
}

std::vector<std::pair<std::string, std::vector<int64_t>>> dense_tensors() {
  return {{"embedding.word_embeddings.weight", {32, 8}},
          {"decoder.layers.self_attention.linear_qkv.layer_norm_weight", {2, 8}},
          {"decoder.layers.self_attention.linear_qkv.weight", {2, 16, 8}},
          {"decoder.layers.self_attention.linear_proj.weight", {2, 8, 8}},
          {"decoder.layers.mlp.linear_fc1.layer_norm_weight", {2, 8}},
          {"decoder.layers.mlp.linear_fc1.weight", {2, 24, 8}},
          {"decoder.layers.mlp.linear_fc2.weight", {2, 8, 12}},
          {"decoder.final_layernorm.weight", {8}},
          {"output_layer.weight", {32, 8}}};
}

void remove(std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors, const std::string& key) {
  std::erase_if(tensors, [&](const auto& tensor) { return tensor.first == key; });
}

TEST(WeightMap, StackedKeysAreReadAtTheirLayer) {
  const auto map = map_weights(contents_of(dense_tensors()), dense());
  ASSERT_TRUE(map.ok()) << map.status().message();
  const WeightRef& qkv = map->layers[1].qkv.weight;
  EXPECT_EQ(qkv.pieces[0].key, "decoder.layers.self_attention.linear_qkv.weight");
  EXPECT_THAT(qkv.pieces[0].leading, ElementsAre(1));
  EXPECT_EQ(qkv.rows, 16);
  EXPECT_EQ(qkv.cols, 8);
  EXPECT_TRUE(map->unused.empty());
}

TEST(WeightMap, SwigluHalvesUnderTheirOwnKeysAreJoined) {
  auto tensors = dense_tensors();
  remove(tensors, "decoder.layers.mlp.linear_fc1.weight");
  for (const char* layer : {"0", "1"}) {
    const std::string key = std::string("decoder.layers.") + layer + ".mlp.linear_fc1.weight";
    tensors.push_back({key + "_w", {12, 8}});
    tensors.push_back({key + "_v", {12, 8}});
  }
  const auto map = map_weights(contents_of(tensors), dense());
  ASSERT_TRUE(map.ok()) << map.status().message();
  ASSERT_EQ(map->layers[1].fc1.weight.pieces.size(), 2u);
  EXPECT_EQ(map->layers[1].fc1.weight.pieces[1].key, "decoder.layers.1.mlp.linear_fc1.weight_v");
}

TEST(WeightMap, EveryWayToStoreExpertsIsFound) {
  ModelConfig config = dense();
  config.moe_layers = {true, true};
  config.moe.experts = 3;
  config.moe.ffn_hidden_size = 6;
  config.activation = Activation::kSquaredRelu;
  for (const std::string form :
       {"mlp.experts.experts.linear_fcN.weight", "mlp.experts.experts.{e}.linear_fcN.weight",
        "mlp.experts.local_experts.{e}.linear_fcN.weight", "mlp.experts.linear_fcN.weight{e}"}) {
    auto tensors = dense_tensors();
    std::erase_if(tensors, [](const auto& t) { return t.first.find(".mlp.") != std::string::npos; });
    tensors.push_back({"decoder.layers.pre_mlp_layernorm.weight", {2, 8}});
    tensors.push_back({"decoder.layers.mlp.router.weight", {2, 3, 8}});
    const bool stacked = form.find("{e}") == std::string::npos;
    for (int e = 0; e < (stacked ? 1 : 3); ++e) {
      for (const char n : {'1', '2'}) {
        std::string key = form;
        key[key.find('N')] = n;
        if (!stacked) key.replace(key.find("{e}"), 3, std::to_string(e));
        std::vector<int64_t> shape = stacked ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{2};
        shape.push_back(n == '1' ? 6 : 8);
        shape.push_back(n == '1' ? 8 : 6);
        tensors.push_back({"decoder.layers." + key, shape});
      }
    }
    const auto map = map_weights(contents_of(tensors), config);
    ASSERT_TRUE(map.ok()) << form << ": " << map.status().message();
    EXPECT_EQ(map->layers[1].expert_fc2[2].weight.rows, 8) << form;
    EXPECT_TRUE(map->unused.empty()) << form;
  }
}

TEST(WeightMap, AShapeThatDisagreesNamesKeyShapesAndArguments) {
  ModelConfig config = dense();
  config.num_query_groups = 2;
  const auto map = map_weights(contents_of(dense_tensors()), config);
  ASSERT_FALSE(map.ok());
  EXPECT_EQ(map.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(map.status().message(), HasSubstr("linear_qkv.weight: shape [2, 16, 8]"));
  EXPECT_THAT(map.status().message(), HasSubstr("[2, 24, 8] = [num_layers, (num_attention_heads + 2"));
}

TEST(WeightMap, AMissingWeightNamesTheKeysTriedAndTheNearestOne) {
  auto tensors = dense_tensors();
  remove(tensors, "decoder.layers.self_attention.linear_proj.weight");
  tensors.push_back({"decoder.layers.self_attention.linear_prog.weight", {2, 8, 8}});
  const auto map = map_weights(contents_of(tensors), dense());
  ASSERT_FALSE(map.ok());
  EXPECT_THAT(map.status().message(), HasSubstr("decoder.layers.0.self_attention.linear_proj.weight"));
  EXPECT_THAT(map.status().message(), HasSubstr("nearest key there is decoder.layers.self_attention.linear_prog"));
}

TEST(WeightMap, AVocabularyMayBePaddedDifferently) {
  ModelConfig config = dense();
  config.vocab_size = 40;
  auto map = map_weights(contents_of(dense_tensors()), config);
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->output.pieces[0].rows, 32);
  EXPECT_EQ(map->output.rows, 40);
  config.vocab_size = 20;
  map = map_weights(contents_of(dense_tensors()), config);
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->output.pieces[0].rows, 20);
}

TEST(WeightMap, UnusedWeightsAreReportedButStateIsNot) {
  auto tensors = dense_tensors();
  tensors.push_back({"decoder.layers.mlp.router.weight", {2, 3, 8}});
  tensors.push_back({"optimizer.state.exp_avg.output_layer.weight", {32, 8}});
  const auto map = map_weights(contents_of(tensors), dense());
  ASSERT_TRUE(map.ok());
  EXPECT_THAT(map->unused, ElementsAre("decoder.layers.mlp.router.weight"));
}

TEST(WeightMap, ADtypeThatIsNoWeightIsRefused) {
  CheckpointContents contents = contents_of(dense_tensors());
  contents.tensors.back().dtype = Dtype::kOther;
  contents.tensors.back().torch_dtype = "float8_e4m3fn";
  const auto map = map_weights(contents, dense());
  ASSERT_FALSE(map.ok());
  EXPECT_THAT(map.status().message(), HasSubstr("float8_e4m3fn"));
}

}  // namespace
}  // namespace assay::model
