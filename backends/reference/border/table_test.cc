// What the C table says of a model.
#include "backends/reference/border/table.h"

#include <gtest/gtest.h>

#include "assay/sdk.hpp"

namespace assay::backend {
namespace {

// Nothing but words: a model whose options gave determinism levels up.
class Words : public Model {
 public:
  explicit Words(const model::ModelConfig& config) : config_(config) {}
  const model::ModelConfig& config() const override { return config_; }
  uint64_t weight_bytes() const override { return 0; }
  const std::string& device() const override { return device_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  uint64_t determinism() const override { return ASSAY_CAP_L1; }
  Result<std::unique_ptr<Cache>> make_cache(const assay_cache_spec&) override { return unsupported("words alone"); }
  Status forward(Cache&, std::span<const assay_run>, float* const*) override { return unsupported("words alone"); }

 private:
  model::ModelConfig config_;
  std::string device_ = "words";
  std::vector<std::string> notes_;
};

Result<std::unique_ptr<Model>> open_words(const model::ModelConfig& config, std::string_view, std::string_view) {
  return std::unique_ptr<Model>(std::make_unique<Words>(config));
}

TEST(Table, AModelSaysWhichLevelsItsOptionsHold) {
  model::ModelConfig config;
  config.num_layers = 1;
  config.hidden_size = config.ffn_hidden_size = 32;
  config.num_attention_heads = config.num_query_groups = 2;
  config.kv_channels = 16;
  config.vocab_size = 128;
  config.max_position_embeddings = 64;
  config.moe_layers = {false};
  const std::string json = model::to_json(config);
  auto source = sdk::sized<assay_model_source>();
  source.config_json = sdk::view(json);
  source.options = sdk::view("{}");
  void* model = nullptr;
  const Status opened = sdk::call(open_model, open_words, nullptr, &source, &model);
  ASSERT_TRUE(opened.ok()) << opened.message();
  auto info = sdk::sized<assay_model_info>();
  EXPECT_TRUE(sdk::call(model_info, model, &info).ok());
  EXPECT_EQ(info.determinism, uint64_t{ASSAY_CAP_L1});
  close(model);
}

}  // namespace
}  // namespace assay::backend
