// Levels L1 to L3 of docs/determinism.md through both engines, on a real backend and a real checkpoint: whatever the
// engine does around a request, its tokens, logprobs, lists and experts are the same bits.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "assay/sdk.hpp"
#include "backends/reference/testing/vector_case.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "plugins/engines/buffered/engine.h"
#include "plugins/engines/static_legacy/engine.h"
#include "plugins/engines/toy_backend/engine_fixture.h"

namespace assay::engines {

using nlohmann::json;

inline const std::string kGold = std::string(ASSAY_SOURCE_DIR) + "/../shared/gold";

inline const plugin::Plugin& backend_plugin(const std::string& name) {
  static std::map<std::string, plugin::Plugin> loaded;
  const auto [place, is_new] = loaded.try_emplace(name);
  if (is_new) {
    const auto failure = plugin::load(ASSAY_BINARY_DIR "/lib/assay/plugins/backend_" + name + ".so",
                                      plugin::silent_host(), &place->second);
    EXPECT_FALSE(failure.has_value()) << failure->message;
  }
  return place->second;
}

class Determinism : public ::testing::Test {
 protected:
  // The gold model (4 layers of experts, RoPE, 1,024 positions) in an arithmetic.
  void load(const std::string& backend, model::Arithmetic arithmetic, const char* options = "{}") {
    Result<assay::testing::VectorCase> gold = assay::testing::read_case(kGold, "moe_10m_licences_b1");
    ASSERT_TRUE(gold.ok()) << gold.status().message();
    gold->config.arithmetic = arithmetic;
    config_ = model::to_json(gold->config);
    backend_ = backend_plugin(backend).backend();
    auto source = sdk::sized<assay_model_source>();
    source.config_json = sdk::view(config_);
    source.checkpoint = sdk::view(gold->checkpoint);
    source.options = sdk::view(std::string_view(options));
    const Status opened = sdk::call(backend_->open, &source, &model_);
    ASSERT_TRUE(opened.ok()) << opened.message();
  }
  void SetUp() override {
    if (!std::filesystem::exists(kGold)) GTEST_SKIP() << "the shared folder of test data is not beside this checkout";
  }
  void TearDown() override {
    if (model_ != nullptr) backend_->close(model_);
  }

  // Ids that look random but are not, the first half in common.
  static std::vector<ToyRequest> requests(size_t count, size_t shortest, size_t longest) {
    std::vector<ToyRequest> made;
    for (size_t i = 0; i < count; ++i) {
      ToyRequest request;
      const size_t length = shortest + i * 37 % (longest - shortest + 1);
      for (size_t t = 0; t < length; ++t) {
        const size_t own = t < length / 2 ? 0 : i + 1;
        request.ids.push_back(static_cast<int32_t>(100 + (t * 2654435761U + own * 40503U) % 3900));
      }
      request.max_new_tokens = static_cast<int32_t>(3 + i % 4);
      if (i % 3 == 0) request.want |= ASSAY_WANT_ROUTING;
      request.top_n = i % 4 == 1 ? 3 : 0;
      request.sampling.top_k = i % 2 == 0 ? 1 : 0;
      request.sampling.prompt_index = i;
      made.push_back(std::move(request));
    }
    return made;
  }

  template <class Engine>
  Outcome run(const std::vector<ToyRequest>& all, const json& options) {
    const std::string text = options.dump();
    auto config = sdk::sized<assay_engine_config>();
    config.backend = backend_;
    config.model = model_;
    config.model_config_json = sdk::view(config_);
    config.options = sdk::view(text);
    Outcome outcome;
    Result<std::unique_ptr<Engine>> engine = Engine::open(config, Host());
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    if (!engine) return outcome;
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(submit(engine->get(), i, all[i]).ok());
    const Status drained = drain(engine->get(), &outcome);
    EXPECT_TRUE(drained.ok()) << drained.message();
    return outcome;
  }

  // Each request alone, without anything special.
  void run_alone(const std::vector<ToyRequest>& all, const json& options = json::object()) {
    alone_.clear();
    for (const ToyRequest& request : all)
      alone_.push_back(std::move(run<BufferedEngine>({request}, options).finished.at(0)));
  }
  void expect_alone(const Outcome& outcome, const json& options) {
    ASSERT_EQ(outcome.finished.size(), alone_.size()) << options;
    for (size_t i = 0; i < alone_.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << options << " request " << i);
      expect_equal(outcome.finished.at(i), alone_[i]);
    }
  }
  Outcome expect_alone(const std::vector<ToyRequest>& all, const json& options) {
    Outcome outcome = run<BufferedEngine>(all, options);
    expect_alone(outcome, options);
    return outcome;
  }
  static int64_t counted(const Outcome& outcome, const char* name) {
    int64_t sum = 0;
    for (const auto& [id, result] : outcome.finished) {
      sum += json::parse(result.extra).at("engine_counters").at(name).get<int64_t>();
    }
    return sum;
  }

  void holds_over_batch_sizes_and_against_the_static_engine(const std::string& backend) {
    for (const auto arithmetic : {model::Arithmetic::kFp32, model::Arithmetic::kBf16}) {
      load(backend, arithmetic);
      std::vector<ToyRequest> all = requests(33, 1, 40);
      for (ToyRequest& request : all) request.max_new_tokens = 3;  // the static engine has one N a batch
      for (ToyRequest& request : all) request.sampling.top_k = 1;
      run_alone(all);
      for (const int size : {1, 2, 3, 7, 8, 16, 33}) expect_alone(all, {{"max_requests", size}, {"block_size", 16}});
      for (const int size : {1, 7, 33}) {
        const json options = {{"max_requests", size}, {"max_sequence_length", 64}};
        expect_alone(run<StaticEngine>(all, options), options);
      }
      backend_->close(model_);
      model_ = nullptr;
    }
  }

  void holds_over_chunks_of_prompts_longer_than_512_tokens(const std::string& backend) {
    load(backend, model::Arithmetic::kBf16);
    const std::vector<ToyRequest> all = requests(3, 513, 600);
    run_alone(all);
    for (const int chunk : {1, 7, 255, 256, 257}) {
      const Outcome outcome = expect_alone(all, {{"chunked_prefill", true}, {"max_chunk", chunk}});
      EXPECT_GE(counted(outcome, "chunks"), 3 * (513 + chunk - 1) / chunk);
    }
  }

  void holds_under_preemption_prefix_cache_and_arrivals(const std::string& backend) {
    load(backend, model::Arithmetic::kFp32);
    std::vector<ToyRequest> all = requests(8, 20, 60);
    for (ToyRequest& request : all) request.max_new_tokens = 20;
    run_alone(all);
    const Outcome tight = expect_alone(all, {{"block_size", 8}, {"block_count", 20}});
    EXPECT_GT(counted(tight, "preemptions"), 0);
    expect_alone(all, {{"requests_per_step", 1}, {"max_requests", 5}});
    expect_alone(all, {{"requests_per_second", 100}, {"virtual_step_seconds", 0.01}});

    for (ToyRequest& request : all) request.want = ASSAY_WANT_LOGPROBS;
    run_alone(all, {{"skip_prompt_logprobs", true}});
    const Outcome cached = expect_alone(all, {{"prefix_caching", true},
                                              {"prefix_caching_eviction_policy", "lru"},
                                              {"skip_prompt_logprobs", true},
                                              {"block_size", 8},
                                              {"block_count", 24}});
    EXPECT_GT(counted(cached, "cached_tokens"), 0);
    EXPECT_GT(counted(cached, "preemptions"), 0);
  }

  std::vector<EngineResult> alone_;
  std::string config_;
  const assay_backend_table* backend_ = nullptr;
  void* model_ = nullptr;
};

}  // namespace assay::engines
