// Every fault under a condition in every scene: struck where the condition holds, left alone where it does not.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "plugins/engines/faulty/condition_scenes.h"
#include "plugins/engines/faulty/conditions.h"
#include "plugins/engines/faulty/faulty.h"
#include "plugins/engines/faulty/process_faults.h"
#include "plugins/engines/toy_backend/engine_driver.h"

namespace assay::engines {
namespace {

using testing::HasSubstr;

// A model that depends on the whole sequence, as the toy does, but never ends a text.
ToyModel endless() {
  ToyModel model;
  model.moe_layers = 2;
  model.moe_topk = 2;
  model.prefers = [](std::span<const int32_t> sequence) {
    uint32_t hash = 7;
    for (const int32_t id : sequence) hash = hash * 31 + static_cast<uint32_t>(id) + hash / 65536;
    return static_cast<int32_t>(hash / 8 % 60);
  };
  return model;
}

ToyModel* first_model() {
  static ToyModel model = endless();
  return &model;
}
// Takes the place of the process's first model before any test has one.
const bool is_first = is_first_model(first_model());  // NOLINT

std::string device_name;  // NOLINT: what the table below says

class ConditionalFaults : public testing::Test {
 protected:
  ConditionalFaults() {
    table_ = *toy_backend();
    table_.model_info = [](void* handle, assay_model_info* info, assay_error* error) -> int32_t {
      const int32_t code = toy_backend()->model_info(handle, info, error);
      info->device = sdk::view(std::string_view(device_name));
      return code;
    };
  }

  Result<std::unique_ptr<FaultyEngine>> open(Fault fault, std::optional<uint64_t> seed, const Scene& scene) {
    Json options = scene.options;
    options["fault"] = to_string(fault);
    if (seed) options["seed"] = *seed;
    const std::string text = options.dump();
    device_name = scene.device;
    auto config = sdk::sized<assay_engine_config>();
    config.backend = &table_;
    config.model = scene.other_model ? &other_ : first_model();
    config.model_config_json = sdk::view(std::string_view("{}"));
    config.tokenizer_json = sdk::view(std::string_view(kToyTokenizer));
    config.options = sdk::view(text);
    return FaultyEngine::open(config, host_.host());
  }

  // What came of all requests of the scene, and what was planted.
  std::vector<EngineResult> run(Fault fault, std::optional<uint64_t> seed, const Scene& scene) {
    std::vector<EngineResult> results;
    const size_t lines = host_.lines().size();
    auto engine = open(fault, seed, scene);
    if (!engine.ok()) {
      ADD_FAILURE() << scene.name << ": " << engine.status().message();
      return results;
    }
    std::vector<std::vector<ToyRequest>> calls = scene.calls;
    uint64_t id = 0;
    for (size_t call = 0; call < calls.size(); ++call) {
      if (call > 0 && scene.resets) {
        EXPECT_TRUE((*engine)->reset().ok());
      }
      const uint64_t first = id;
      for (const ToyRequest& request : calls[call]) EXPECT_TRUE(submit(engine->get(), id++, request).ok());
      Outcome outcome;
      const Status drained = drain(engine->get(), &outcome);
      EXPECT_TRUE(drained.ok()) << scene.name << ": " << drained.message();
      EXPECT_TRUE(outcome.failed.empty()) << scene.name << ": " << outcome.failed.begin()->second.message();
      for (uint64_t i = first; i < id && outcome.finished.count(i) > 0; ++i) results.push_back(outcome.finished.at(i));
      if (!scene.goes_on || call > 0) continue;
      std::vector<ToyRequest> next = calls[0];
      for (size_t i = 0; i < next.size(); ++i) {
        next[i].ids.insert(next[i].ids.end(), results.at(i).tokens.begin(), results.at(i).tokens.end());
      }
      calls.push_back(next);
    }
    planted_.assign(host_.lines().begin() + static_cast<ptrdiff_t>(lines), host_.lines().end());
    return results;
  }

  static bool same(const std::vector<EngineResult>& a, const std::vector<EngineResult>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const EngineResult& x, const EngineResult& y) {
      return x.tokens == y.tokens && x.prompt_logprobs == y.prompt_logprobs &&
             x.generated_logprobs == y.generated_logprobs && x.routing == y.routing;
    });
  }

  ToyModel model_ = endless();
  ToyModel other_ = endless();
  ToyHost host_{&model_};
  assay_backend_table table_{};
  std::vector<std::string> planted_;
};

Faults conditional() {
  Faults faults;
  for (const FaultInfo& info : fault_table()) {
    if (info.family == Family::kCondition && ignored_option(info.fault).empty()) faults.insert(info.fault);
  }
  return faults;
}

TEST_F(ConditionalFaults, StrikeWhereTheirConditionHoldsAndNowhereElse) {
  ASSERT_TRUE(is_first);
  for (const Scene& scene : all_scenes()) {
    const std::vector<EngineResult> good = run(Fault::kNone, std::nullopt, scene);
    ASSERT_TRUE(planted_.empty());
    for (const Fault fault : conditional()) {
      const bool expected = scene.struck.count(fault) > 0;
      const std::vector<EngineResult> bad = run(fault, std::nullopt, scene);
      EXPECT_EQ(!planted_.empty(), expected) << to_string(fault) << " in scene " << scene.name;
      EXPECT_EQ(same(bad, good), !expected) << to_string(fault) << " in scene " << scene.name;
    }
  }
}

TEST_F(ConditionalFaults, ASeedChoosesOneOfManyPlaces) {
  const Faults everywhere = {Fault::kContentOnlyHit, Fault::kDrawBySlot,
                             Fault::kLongNeighbour};  // no single place would show
  const Faults one_place = {Fault::kLostOnResume, Fault::kResumeArithmetic, Fault::kContinueOff,
                            Fault::kDrawOnResume, Fault::kPageEnd,          Fault::kPageTurn};
  for (const Fault fault : conditional()) {
    const std::vector<Scene> scenes = all_scenes();
    const auto scene =
        std::find_if(scenes.rbegin(), scenes.rend(), [&](const Scene& s) { return s.struck.count(fault); });
    ASSERT_NE(scene, scenes.rend()) << to_string(fault);
    const std::vector<EngineResult> good = run(Fault::kNone, std::nullopt, *scene);
    std::set<std::string> places;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      EXPECT_FALSE(same(run(fault, seed, *scene), good)) << to_string(fault) << " seed " << seed;
      ASSERT_FALSE(planted_.empty()) << to_string(fault) << " seed " << seed;
      EXPECT_THAT(planted_[0], HasSubstr("planted " + std::string(to_string(fault)) + ": prompt "));
      if (everywhere.count(fault) == 0) {
        EXPECT_EQ(planted_.size(), 1U) << to_string(fault);
      }
      places.insert(planted_[0]);
    }
    if (everywhere.count(fault) + one_place.count(fault) == 0) {
      EXPECT_GE(places.size(), 2U) << to_string(fault);
    }
  }
}

TEST_F(ConditionalFaults, ALastBitIsOneLogprobThatMovesByItsLastBit) {
  const std::vector<Scene> scenes = all_scenes();
  const auto scene =
      std::find_if(scenes.begin(), scenes.end(), [](const Scene& s) { return s.name == "three at once"; });
  const std::vector<EngineResult> good = run(Fault::kNone, std::nullopt, *scene);
  const std::vector<EngineResult> bad = run(Fault::kBatchArithmetic, 3, *scene);
  size_t moved = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_EQ(bad[i].tokens, good[i].tokens);
    std::vector<double> before = good[i].prompt_logprobs;
    std::vector<double> after = bad[i].prompt_logprobs;
    before.insert(before.end(), good[i].generated_logprobs.begin(), good[i].generated_logprobs.end());
    after.insert(after.end(), bad[i].generated_logprobs.begin(), bad[i].generated_logprobs.end());
    for (size_t k = 0; k < before.size(); ++k) {
      if (after[k] == before[k]) continue;
      ++moved;
      EXPECT_EQ(static_cast<float>(after[k]), std::nextafterf(static_cast<float>(before[k]), -INFINITY));
    }
  }
  EXPECT_EQ(moved, 1U);
}

TEST_F(ConditionalFaults, OptionsThatAreIgnoredLeaveTheirMechanismOut) {
  const std::vector<Scene> scenes = all_scenes();
  const auto counter = [&](Fault fault, const std::string& name, const char* member) {
    const auto scene = std::find_if(scenes.begin(), scenes.end(), [&](const Scene& s) { return s.name == name; });
    uint64_t sum = 0;
    for (const EngineResult& result : run(fault, std::nullopt, *scene)) {
      sum += Json::parse(result.extra)["engine_counters"][member].get<uint64_t>();
    }
    return sum;
  };
  const auto expect_gone = [&](Fault fault, const std::string& name, const char* member, uint64_t without) {
    EXPECT_GT(counter(Fault::kNone, name, member), without) << name;
    EXPECT_EQ(counter(fault, name, member), without) << name;
    ASSERT_EQ(planted_.size(), 1U);
    EXPECT_THAT(planted_[0], HasSubstr("planted " + std::string(to_string(fault)) + ": option "));
  };
  expect_gone(Fault::kPrefixIgnored, "a prefix of two blocks", "cached_tokens", 0);
  expect_gone(Fault::kChunksIgnored, "two chunks", "chunks", 3);
  expect_gone(Fault::kRoomIgnored, "preempted", "preemptions", 0);
}

TEST_F(ConditionalFaults, NothingElseIsStruckByAFaultOfAnotherFamily) {
  const Scene scene = all_scenes().front();
  run(Fault::kWrongLogprob, 1, scene);
  ASSERT_EQ(planted_.size(), 1U);
  EXPECT_THAT(planted_[0], HasSubstr("planted wrong_logprob"));
}

TEST(FaultyOptions, ListTheMembersOfBothEngines) {
  const Json schema = Json::parse(faulty_options_schema());
  for (const char* member : {"max_requests", "max_sequence_length", "block_size", "block_count", "prefix_caching",
                             "chunked_prefill", "max_chunk", "skip_prompt_logprobs", "engine", "fault"}) {
    EXPECT_TRUE(schema["properties"].contains(member)) << member;
  }
  EXPECT_FALSE(schema["properties"].contains("seed")) << "who fills in a seed of arrivals must not choose places";
  EXPECT_TRUE(schema["patternProperties"].contains("^seed$"));
}

TEST(FaultyOptions, EachEngineInsideGetsWhatItKnows) {
  const std::string both = R"({"fault": "none", "max_requests": 3, "max_sequence_length": 0, "prefix_caching": true)";
  const Result<FaultyOptions> legacy = parse_faulty_options(both + "}");
  ASSERT_TRUE(legacy.ok()) << legacy.status().message();
  EXPECT_EQ(Json::parse(legacy->rest), Json::parse(R"({"max_requests": 3})"));
  const Result<FaultyOptions> paged = parse_faulty_options(both + R"(, "engine": "buffered"})");
  ASSERT_TRUE(paged.ok()) << paged.status().message();
  EXPECT_EQ(paged->engine, Inner::kBuffered);
  EXPECT_EQ(Json::parse(paged->rest),
            Json::parse(R"({"max_requests": 3, "max_sequence_length": 0, "prefix_caching": true})"));
  EXPECT_THAT(parse_faulty_options(R"({"fault": "none", "engine": "vllm"})").status().message(),
              HasSubstr(R"(engine is "vllm", expected "static_legacy" or "buffered")"));
}

}  // namespace
}  // namespace assay::engines
