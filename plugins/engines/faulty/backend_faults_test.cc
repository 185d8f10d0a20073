// Faults in the use of the backend, in its arithmetic, in prompts and in time, on a toy whose logits depend on every
// entry of the cache.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "plugins/engines/faulty/faulty.h"
#include "plugins/engines/faulty/process_faults.h"
#include "plugins/engines/faulty/rounding.h"
#include "plugins/engines/toy_backend/engine_driver.h"

namespace assay::engines {
namespace {

using testing::HasSubstr;

constexpr size_t kFaultyRequests = 6;

// Stands for the model that the faulty engine opens besides the right one.
ToyModel* wrong_toy() {
  static ToyModel model;
  return &model;
}

class FaultyBackend : public testing::Test {
 protected:
  FaultyBackend() {
    model_.moe_layers = 2;
    model_.moe_topk = 2;
    // Depends on the whole sequence as the toy's own choice does, but never ends a text.
    model_.prefers = [](std::span<const int32_t> sequence) {
      uint32_t hash = 7;
      for (const int32_t id : sequence) hash = hash * 31 + static_cast<uint32_t>(id) + hash / 65536;
      return static_cast<int32_t>(hash / 8 % 60);
    };
    table_ = *toy_backend();
    table_.open = [](const assay_model_source* source, void** model, assay_error*) -> int32_t {
      EXPECT_EQ(sdk::text(source->checkpoint), "checkpoint");
      *model = wrong_toy();
      return ASSAY_OK;
    };
    // The wrong model computes as the right one, but every logprob is a nat lower.
    table_.forward = [](void* model, void* cache, const assay_forward* batch, uint64_t* ticket,
                        assay_error* error) -> int32_t {
      const int32_t code = toy_backend()->forward(model, cache, batch, ticket, error);
      for (size_t i = 0; model == wrong_toy() && i < batch->run_count; ++i) {
        const assay_run& run = batch->runs[i];
        for (uint32_t row = 0; row < run.output_rows; ++row) run.output.target_logprobs[row] -= 1;
        if (run.output.sampled_logprob != nullptr) *run.output.sampled_logprob -= 1;
      }
      return code;
    };
    for (size_t i = 0; i < kFaultyRequests; ++i) {
      ToyRequest request{.ids = {}, .max_new_tokens = 12, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_ROUTING};
      for (int32_t p = 0; p < 6; ++p) request.ids.push_back(static_cast<int32_t>(i) * 7 + 2 * p + 1);
      request.sampling.prompt_index = i;
      requests_.push_back(request);
    }
  }

  Outcome run(Fault fault, std::optional<uint64_t> seed, int max_requests = 2) {
    nlohmann::json options = {
        {"fault", to_string(fault)}, {"max_requests", max_requests}, {"checkpoint", "checkpoint"}, {"engine", inner_}};
    if (seed) options["seed"] = *seed;
    const std::string text = options.dump();
    auto config = sdk::sized<assay_engine_config>();
    config.backend = &table_;
    config.model = &model_;
    config.model_config_json = sdk::view(config_);
    config.tokenizer_json = sdk::view(std::string_view(kToyTokenizer));
    config.options = sdk::view(text);
    const size_t lines = host_.lines().size();
    Result<std::unique_ptr<FaultyEngine>> engine = FaultyEngine::open(config, host_.host());
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    for (size_t i = 0; i < kFaultyRequests; ++i) EXPECT_TRUE(submit(engine->get(), i, requests_[i]).ok());
    Outcome outcome;
    const Status drained = drain(engine->get(), &outcome);
    EXPECT_TRUE(drained.ok()) << drained.message();
    planted_.assign(host_.lines().begin() + static_cast<ptrdiff_t>(lines), host_.lines().end());
    return outcome;
  }

  static bool same(const EngineResult& a, const EngineResult& b) {
    return a.tokens == b.tokens && a.generated_logprobs == b.generated_logprobs &&
           a.prompt_logprobs == b.prompt_logprobs && a.prompt_ids == b.prompt_ids && a.routing == b.routing;
  }

  // Requests whose results differ from those of the engine without a fault.
  std::set<size_t> struck(Fault fault, uint64_t seed, int max_requests = 2) {
    const Outcome good = run(Fault::kNone, std::nullopt, max_requests);
    bad_ = run(fault, seed, max_requests);
    good_ = good.finished;
    std::set<size_t> changed;
    for (size_t i = 0; i < kFaultyRequests; ++i) {
      if (!same(bad_.finished.at(i), good.finished.at(i))) changed.insert(i);
    }
    return changed;
  }

  // At every seed the victim alone is struck, the log says where, and the places are many.
  void expect_victims(Fault fault, size_t least_places) {
    std::set<std::string> places;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      EXPECT_EQ(struck(fault, seed), std::set<size_t>{seed % kFaultyRequests}) << to_string(fault) << " seed " << seed;
      ASSERT_FALSE(planted_.empty()) << to_string(fault) << " seed " << seed;
      EXPECT_THAT(planted_[0], HasSubstr("planted " + std::string(to_string(fault)) + ": "));
      places.insert(planted_[0]);
    }
    EXPECT_GE(places.size(), least_places) << to_string(fault);
  }

  ToyModel model_;
  ToyHost host_{&model_};
  std::string inner_ = "static_legacy";
  std::string config_ = R"({"rotary_base": 10000.0, "moe": {"experts": 8, "topk": 2}})";
  assay_backend_table table_{};
  std::vector<ToyRequest> requests_;
  std::vector<std::string> planted_;
  Outcome bad_;
  std::map<uint64_t, EngineResult> good_;
};

TEST_F(FaultyBackend, FeedingFaultsStrikeTheVictimAlone) {
  for (const Fault fault : {Fault::kLostKvEntry, Fault::kOffByOnePosition, Fault::kOffByOnePrefill, Fault::kStaleInput,
                            Fault::kSampled, Fault::kWrongToken}) {
    expect_victims(fault, 10);
  }
  expect_victims(Fault::kLastTokenUnseen, kFaultyRequests);
}

TEST_F(FaultyBackend, StaleKvStrikesRequestsThatHaveAPredecessor) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(struck(Fault::kStaleKv, seed), std::set<size_t>{2 + seed % kFaultyRequests % (kFaultyRequests - 2)});
  }
  EXPECT_TRUE(struck(Fault::kStaleKv, 1, 6).empty()) << "one batch: nobody was there before";
  EXPECT_TRUE(planted_.empty());
}

TEST_F(FaultyBackend, MixedKvStrikesTwoRowsOfABatch) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(struck(Fault::kMixedKv, seed, 3).size(), 2U) << seed;
    EXPECT_EQ(planted_.size(), 1U);
  }
}

TEST_F(FaultyBackend, BufferedInsideGivesWhatBufferedGivesAndIsStruckAsWell) {
  const Outcome legacy = run(Fault::kNone, std::nullopt);
  inner_ = "buffered";
  config_ = "{}";  // not one that buffered could read
  const Outcome paged = run(Fault::kNone, std::nullopt);
  for (size_t i = 0; i < kFaultyRequests; ++i) {
    EXPECT_TRUE(same(paged.finished.at(i), legacy.finished.at(i))) << i;
    EXPECT_THAT(paged.finished.at(i).extra, HasSubstr(R"("engine_counters":{)"));
  }
  for (const Fault fault :
       {Fault::kLostKvEntry, Fault::kOffByOnePosition, Fault::kOffByOnePrefill, Fault::kStaleInput, Fault::kWrongToken,
        Fault::kLastTokenUnseen, Fault::kDoubledFirstToken, Fault::kWrongLogprob, Fault::kWrongRotary}) {
    EXPECT_EQ(struck(fault, 3), std::set<size_t>{3}) << to_string(fault);
    EXPECT_FALSE(planted_.empty()) << to_string(fault);
  }
}

TEST_F(FaultyBackend, WhatComesBeforeTheStepIsRight) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    struck(Fault::kWrongToken, seed);
    const EngineResult& bad = bad_.finished.at(seed % kFaultyRequests);
    const EngineResult& good = good_.at(seed % kFaultyRequests);
    const size_t step = Places(seed, kFaultyRequests).pick(kEarlySteps);
    EXPECT_TRUE(std::equal(bad.tokens.begin(), bad.tokens.begin() + static_cast<ptrdiff_t>(step), good.tokens.begin()));
    if (bad.tokens.size() == step) continue;  // the second best is the end
    EXPECT_NE(bad.tokens[step], good.tokens[step]);
    EXPECT_LT(bad.generated_logprobs[step], good.generated_logprobs[step]) << "the second best";
  }
}

TEST_F(FaultyBackend, ChunkBordersLeaveTheFirstChunkRight) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    struck(Fault::kOffByOnePrefill, seed);
    const size_t border = 1 + Places(seed, kFaultyRequests).pick(5);
    const std::vector<double>& bad = bad_.finished.at(seed).prompt_logprobs;
    const std::vector<double>& good = good_.at(seed).prompt_logprobs;
    for (size_t i = 0; i < border; ++i) EXPECT_EQ(bad[i], good[i]) << seed;
    if (border < good.size()) {
      EXPECT_NE(bad[border], good[border]) << seed;
    }
  }
}

TEST_F(FaultyBackend, OneStepOfAnotherModelStrikesTheVictim) {
  for (const Fault fault : {Fault::kWrongExpert, Fault::kExpertScale, Fault::kWrongRotary}) {
    expect_victims(fault, 10);
    if (fault != Fault::kExpertScale) {
      EXPECT_EQ(planted_.size(), 1U) << "one step";
    }
  }
}

TEST_F(FaultyBackend, WrongModelsAreWrongInOneRespect) {
  const std::string right = R"({"rotary_base": 1000.0, "moe": {"experts": 64, "topk": 6, "scaling_factor": 1.5}})";
  const auto wrong = [&](Fault fault) { return nlohmann::json::parse(wrong_model_config(fault, right)); };
  nlohmann::json expected = nlohmann::json::parse(right);
  expected["moe"]["scaling_factor"] = 3.0;
  EXPECT_EQ(wrong(Fault::kExpertScale), expected);
  expected = nlohmann::json::parse(right);
  expected["rotary_base"] = 100.0;
  EXPECT_EQ(wrong(Fault::kWrongRotary), expected);
  expected = nlohmann::json::parse(right);
  expected["moe"]["groups"] = 8;
  expected["moe"]["group_topk"] = 4;
  EXPECT_EQ(wrong(Fault::kWrongExpert), expected);
  EXPECT_EQ(wrong_model_config(Fault::kStaleKv, right), "");
}

TEST_F(FaultyBackend, WrongModelsNeedTheCheckpoint) {
  const auto opened = open_on_toy<FaultyEngine>(&model_, host_, R"({"fault": "wrong_expert"})");
  EXPECT_EQ(opened.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(opened.status().message(), HasSubstr("fault wrong_expert needs checkpoint"));
}

TEST_F(FaultyBackend, PromptsArriveChanged) {
  for (const Fault fault : {Fault::kDoubledFirstToken, Fault::kPromptHeadTruncated, Fault::kPromptTailTruncated,
                            Fault::kPromptTokenChanged}) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const size_t victim = seed % kFaultyRequests;
      EXPECT_EQ(struck(fault, seed), std::set<size_t>{victim}) << to_string(fault) << " seed " << seed;
      EXPECT_NE(bad_.finished.at(victim).prompt_ids, requests_[victim].ids);
      EXPECT_EQ(planted_.size(), 1U);
    }
  }
}

TEST_F(FaultyBackend, SeedOfTheRequestIsTheSeed) {
  for (ToyRequest& request : requests_) request.sampling.seed = 4;
  const std::string options = R"({"fault": "doubled_first_token", "seed_of_request": true})";
  auto engine = open_on_toy<FaultyEngine>(&model_, host_, options);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  for (size_t i = 0; i < kFaultyRequests; ++i) EXPECT_TRUE(submit(engine->get(), i, requests_[i]).ok());
  Outcome outcome;
  EXPECT_TRUE(drain(engine->get(), &outcome).ok());
  ASSERT_EQ(host_.lines().size(), 1U);
  EXPECT_THAT(host_.lines()[0], HasSubstr("planted doubled_first_token: request 4, token 0 twice"));
}

TEST_F(FaultyBackend, SlowFaultsWaitAndChangeNothingElse) {
  requests_.resize(kFaultyRequests);
  for (ToyRequest& request : requests_) request.max_new_tokens = 2;
  for (const Fault fault : {Fault::kSlowTokens, Fault::kThroughputCollapse}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(struck(fault, 3, 6).empty());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(10));
    EXPECT_FALSE(planted_.empty());
  }
}

TEST_F(FaultyBackend, MemoryThatIsTakenIsTouched) {
  const auto memory = take_memory(size_t{4} << 20);
  EXPECT_EQ(memory[0], 0x5A);
  EXPECT_EQ(memory[(size_t{4} << 20) - 1], 0x5A);
}

TEST(Rounding, KeepsTheMantissaOfTheType) {
  EXPECT_EQ(round_mantissa(1.0 + 0x1p-8, 8), 1.0) << "ties to even";
  EXPECT_EQ(round_mantissa(1.0 + 0x1.8p-8, 8), 1.0 + 0x1p-7);
  EXPECT_EQ(truncate_mantissa(-(1.0 + 0x1.8p-7), 8), -(1.0 + 0x1p-7));
  EXPECT_EQ(round_mantissa(0, 8), 0);
}

TEST(Places, OneVictimASeedAndEveryoneWithout) {
  const Places seeded(13, 5);
  EXPECT_EQ(seeded.victim(), 3U);
  EXPECT_TRUE(seeded.strikes(3));
  EXPECT_FALSE(seeded.strikes(4));
  EXPECT_TRUE(Places(std::nullopt, 5).strikes(4));
  EXPECT_EQ(Places(std::nullopt, 5).pick(9), 4U);
  for (const size_t n : {1, 2, 7, 8, 24, 30}) {
    std::set<std::pair<size_t, size_t>> places;
    for (uint64_t seed = 0; seed < 5 * n; ++seed) places.insert({Places(seed, 5).victim(), Places(seed, 5).pick(n)});
    EXPECT_EQ(places.size(), 5 * n) << "every place once";
  }
  size_t half = 0;
  for (size_t request = 0; request < 5; ++request) half += seeded.strikes_half(request) ? 1 : 0;
  EXPECT_EQ(half, 3U);
  EXPECT_TRUE(seeded.strikes_half(3));
}

}  // namespace
}  // namespace assay::engines
