// The CPU backend behind the C table: what an engine sees.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "assay/sdk.hpp"
#include "backends/cpu/cpu_model.h"
#include "backends/model/checkpoint/model_writer.h"
#include "backends/reference/border/table.h"

namespace assay::cpu {
namespace {

using ::testing::HasSubstr;

class Border : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.num_layers = 2;
    config_.hidden_size = 32;
    config_.ffn_hidden_size = 48;
    config_.num_attention_heads = config_.num_query_groups = 2;
    config_.kv_channels = 16;
    config_.vocab_size = 128;
    config_.max_position_embeddings = 64;
    config_.positions = model::Positions::kLearnedAbsolute;
    config_.moe_layers = {false, false};
    folder_ = ::testing::TempDir() + "assay_border_" + std::to_string(getpid());
    model::CheckpointSpec spec;
    spec.model = config_;
    spec.std = 0.3;
    ASSERT_TRUE(model::write_checkpoint(spec, folder_).ok());
  }
  void TearDown() override {
    if (cache_ != nullptr) backend::release(cache_);
    if (model_ != nullptr) backend::close(model_);
    std::filesystem::remove_all(folder_);
  }

  Status open(const model::ModelConfig& config) {
    const std::string json = model::to_json(config);
    auto source = sdk::sized<assay_model_source>();
    source.config_json = sdk::view(json);
    source.checkpoint = sdk::view(folder_);
    source.options = sdk::view("{}");
    assay_host host{};
    host.size = sizeof(host);
    host.context = &log_;
    host.log = [](void* context, int32_t, assay_str line) {
      static_cast<std::vector<std::string>*>(context)->emplace_back(sdk::text(line));
    };
    return sdk::call(backend::open_model, open_cpu, &host, &source, &model_);
  }

  void open_with_cache() {
    const Status status = open(config_);
    ASSERT_TRUE(status.ok()) << status.message();
    const assay_cache_spec spec{sizeof(spec), 8, 8, 0};
    ASSERT_TRUE(sdk::call(backend::make_cache, model_, &spec, &cache_).ok());
  }

  // Draws the next token greedily. ids null: the previous output.
  Status step(const int32_t* ids, uint32_t count, uint32_t start, int32_t& token) {
    static const int32_t kBlocks[] = {3, 1, 7, 0, 2, 4, 5, 6};
    assay_run run{};
    run.ids = ids;
    run.count = count;
    run.start = start;
    run.blocks = kBlocks;
    run.block_count = 8;
    run.output_rows = 1;
    run.sampling = {1, 1, 0, 0, 0, 0};
    run.output.sampled = &token;
    auto request = sdk::sized<assay_forward>();
    request.flags = ASSAY_FORWARD_WAIT;
    request.runs = &run;
    request.run_count = 1;
    return sdk::call(backend::forward, model_, cache_, &request, &ticket_);
  }

  model::ModelConfig config_;
  std::string folder_;
  void* model_ = nullptr;
  void* cache_ = nullptr;
  uint64_t ticket_ = 0;
  std::vector<std::string> log_;
};

TEST_F(Border, ThePreviousOutputContinuesASequenceAsItsIdsWould) {
  open_with_cache();
  const int32_t prompt[] = {5, 17, 99};
  int32_t first = -1;
  ASSERT_TRUE(step(prompt, 3, 0, first).ok());
  int32_t by_id = -1;
  ASSERT_TRUE(step(&first, 1, 3, by_id).ok());
  ASSERT_TRUE(step(prompt, 3, 0, first).ok());
  int32_t by_previous = -1;
  ASSERT_TRUE(step(nullptr, 1, 3, by_previous).ok());
  EXPECT_EQ(by_previous, by_id);
  EXPECT_TRUE(sdk::call(backend::wait, model_, ticket_).ok());
  EXPECT_FALSE(sdk::call(backend::wait, model_, ticket_ + 1).ok());
}

TEST_F(Border, ThePreviousOutputNeedsAPreviousDraw) {
  open_with_cache();
  int32_t token = -1;
  EXPECT_THAT(step(nullptr, 1, 0, token).message(), HasSubstr("the previous forward drew no token"));
}

TEST_F(Border, ASequenceBeyondTheLearnedPositionsIsExhausted) {
  open_with_cache();
  int32_t token = -1;
  const int32_t id = 1;
  EXPECT_EQ(step(&id, 1, 64, token).code(), StatusCode::kExhausted);
}

TEST_F(Border, ModelInfoTellsWhatTheConfigSays) {
  open_with_cache();
  auto info = sdk::sized<assay_model_info>();
  ASSERT_TRUE(sdk::call(backend::model_info, model_, &info).ok());
  EXPECT_EQ(info.vocab_size, 128);
  EXPECT_EQ(info.moe_layers, 0);
  EXPECT_EQ(info.max_positions, 64);
  EXPECT_EQ(info.logits_mantissa, 24);
  EXPECT_GT(info.weight_bytes, 2u * 128 * 32);
  EXPECT_THAT(std::string(sdk::text(info.device)), ::testing::StartsWith("cpu "));
  EXPECT_EQ(info.size, sizeof(assay_model_info));
  EXPECT_EQ(info.determinism, ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3);
}

TEST_F(Border, ModelInfoFillsNoMoreThanAnOlderHostHasRoomFor) {
  open_with_cache();
  auto info = sdk::sized<assay_model_info>();
  info.size = offsetof(assay_model_info, determinism);
  info.determinism = 99;
  ASSERT_TRUE(sdk::call(backend::model_info, model_, &info).ok());
  EXPECT_EQ(info.vocab_size, 128);
  EXPECT_EQ(info.size, offsetof(assay_model_info, determinism));
  EXPECT_EQ(info.determinism, 99U);
  info.size = 8;
  EXPECT_EQ(sdk::call(backend::model_info, model_, &info).code(), StatusCode::kInvalid);
}

TEST_F(Border, AConfigThatDoesNotFitTheCheckpointIsInvalidWithBothShapes) {
  config_.ffn_hidden_size = 50;
  const Status status = open(config_);
  EXPECT_EQ(status.code(), StatusCode::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("linear_fc1.weight: shape [2, 48, 32]"));
  EXPECT_THAT(status.message(), HasSubstr("[2, 50, 32] = [num_layers, ffn_hidden_size, hidden_size]"));
}

TEST_F(Border, WeightsThatTheModelDoesNotUseAreLogged) {
  config_.positions = model::Positions::kNone;
  ASSERT_TRUE(open(config_).ok());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0], HasSubstr("1 tensors are not used by this model: embedding.position_embeddings.weight"));
}

}  // namespace
}  // namespace assay::cpu
