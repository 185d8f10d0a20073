// Engines on backend `cuda` with random weights: what they say does not depend on the kernels that decode.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/model/config/model_config.h"
#include "core/run/engine_session.h"
#include "core/run/loaded_model.h"

namespace assay {
namespace {

using nlohmann::json;

model::ModelConfig shapes() {
  model::ModelConfig config;
  config.num_layers = 3;
  config.hidden_size = 2048;
  config.ffn_hidden_size = 448;
  config.num_attention_heads = config.num_query_groups = 16;
  config.kv_channels = 128;
  config.vocab_size = 4096;
  config.max_position_embeddings = 2048;
  config.rotary_base = 1000000;
  config.norm = model::Norm::kRmsNorm;
  config.activation = model::Activation::kSwiglu;
  config.linear_bias = false;
  config.tied_embeddings = false;
  config.arithmetic = model::Arithmetic::kBf16;
  config.moe_layers = {false, true, true};
  config.moe.experts = 64;
  config.moe.topk = 6;
  config.moe.ffn_hidden_size = 192;
  config.moe.shared_ffn_hidden_size = 320;
  config.moe.score = model::RouterScore::kSigmoid;
  return config;
}

// Every prompt of another length, so that a batch shrinks one request at a time.
constexpr size_t kRequests = 11;
constexpr int32_t kNew = 40;

class CudaEngines : public ::testing::Test {
 protected:
  CudaEngines() : registry_({.plugin_path = {}, .environment = "", .install_dir = kPlugins}) {}

  // Fails the test, or skips it where there is no device, and returns nothing then.
  std::vector<RequestRecord> run(const std::string& engine, const std::string& options, const std::string& decode) {
    run::WorkerPlan plan;
    plan.backend = "cuda";
    plan.backend_options = json({{"weights", "random:5"}, {"decode", decode}}).dump();
    plan.model = json({{"config", json::parse(model::to_json(shapes()))}, {"checkpoint", ""}}).dump();
    auto model = run::LoadedModel::load(plan, registry_);
    if (!model) {  // any other failure is one
      const std::string message = model.status().message();
      if (const size_t found = message.find("no CUDA device"); found != std::string::npos)
        reason_ = message.substr(found);
    }
    if (!reason_.empty()) return {};
    EXPECT_TRUE(model.ok()) << model.status().message();
    const auto plugin = registry_.find(plugin::Kind::kEngine, engine);
    EXPECT_TRUE(plugin.ok()) << plugin.status().message();
    if (!model.ok() || !plugin.ok()) return {};
    run::CaseOrder order;
    order.prompts.resize(kRequests);
    order.max_new_tokens = kNew;
    order.top_n = 3;
    order.logprobs = true;
    order.routing = true;
    order.top_k = 1;
    order.engine_options = options;
    std::vector<run::RequestChange> changes(kRequests);
    for (size_t i = 0; i < kRequests; ++i) {
      for (size_t t = 0; t < 1 + 29 * i; ++t) {
        changes[i].ids.push_back(static_cast<int32_t>((t * 7919 + i * 131) % 4096));
      }
      changes[i].max_new_tokens = kNew - static_cast<int32_t>(i);
    }
    const auto result = run::run_session({.engine = *plugin,
                                          .backend = model->backend(),
                                          .model = model->model(),
                                          .model_config_json = model->config_json(),
                                          .tokenizer_json = "{}"},
                                         order, {}, changes);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    for (const run::FailedRequest& failed : result->failed) ADD_FAILURE() << failed.id << ": " << failed.message;
    return result->records;
  }

  void compare(const std::string& engine, const std::string& options) {
    const std::vector<RequestRecord> plain = run(engine, options, "plain");
    if (!reason_.empty()) GTEST_SKIP() << reason_;
    const std::vector<RequestRecord> fast = run(engine, options, "auto");
    ASSERT_EQ(plain.size(), kRequests);
    ASSERT_EQ(fast.size(), kRequests);
    for (size_t i = 0; i < kRequests; ++i) {
      ASSERT_TRUE(plain[i].tokens && plain[i].logprobs);
      EXPECT_GE(plain[i].tokens->size(), static_cast<size_t>(kNew) - i);
      EXPECT_EQ(fast[i].tokens, plain[i].tokens) << engine << " " << options << ", request " << i;
      EXPECT_EQ(fast[i].logprobs, plain[i].logprobs) << engine << ", request " << i;
      ASSERT_TRUE(plain[i].routing && fast[i].routing);
      EXPECT_EQ(fast[i].routing->experts, plain[i].routing->experts) << engine << ", request " << i;
    }
  }

  static constexpr const char* kPlugins = ASSAY_BINARY_DIR "/lib/assay/plugins";
  plugin::PluginRegistry registry_;
  std::string reason_;  // why there is no device
};

TEST_F(CudaEngines, StaticLegacySaysTheSameWithEitherDecode) {
  compare("static_legacy", R"({"max_requests":1})");
  if (!IsSkipped()) compare("static_legacy", R"({"max_requests":4})");
}

TEST_F(CudaEngines, BufferedSaysTheSameWithEitherDecode) {
  compare("buffered", R"({"block_size":16,"block_count":400,"termination_id":-1})");
  if (!IsSkipped()) {
    compare("buffered", R"({"block_size":64,"block_count":100,"termination_id":-1,"max_requests":5,"max_tokens":64,)"
                        R"("chunked_prefill":true})");
  }
}

}  // namespace
}  // namespace assay
