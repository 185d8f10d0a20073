#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "assay/sdk.hpp"
#include "core/conformance/toy_backend.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"

namespace assay::engines {
namespace {

class Engine : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::filesystem::path file =
        std::filesystem::path(ASSAY_BINARY_DIR "/lib/assay/plugins") / ("engine_" + GetParam() + ".so");
    const auto failure = plugin::load(file, plugin::silent_host(), &plugin_);
    ASSERT_FALSE(failure.has_value()) << failure->message;
  }

  plugin::Plugin plugin_;
};

// What the engines that compute claim, their equality tests and megatron_vectors prove.
TEST_P(Engine, ClaimsItsLevelsOfDeterminism) {
  const bool computes = (plugin_.capabilities & ASSAY_CAP_NEEDS_BACKEND) != 0;
  EXPECT_EQ(plugin_.capabilities & plugin::kLevels, computes ? plugin::kLevels : 0);
}

TEST_P(Engine, DescribesItsOptionsAsJsonSchema) {
  const nlohmann::json schema = nlohmann::json::parse(plugin_.options_schema, nullptr, false);
  ASSERT_TRUE(schema.is_object());
  EXPECT_EQ(schema["type"], "object");
  EXPECT_EQ(schema["additionalProperties"], false);
}

// The faulty engine wraps the backend: this is the way through two tables.
TEST(EngineTable, RunsARequestThroughTheSharedObject) {
  for (const std::string name : {"static_legacy", "buffered", "faulty"}) {
    plugin::Plugin loaded;
    const auto failure =
        plugin::load(ASSAY_BINARY_DIR "/lib/assay/plugins/engine_" + name + ".so", plugin::silent_host(), &loaded);
    ASSERT_FALSE(failure.has_value()) << failure->message;
    ToyModel model;
    auto config = sdk::sized<assay_engine_config>();
    config.backend = toy_backend();
    config.model = &model;
    const std::string options = name == "faulty" ? R"({"fault": "none"})" : "{}";
    config.options = sdk::view(options);
    void* engine = nullptr;
    ASSERT_TRUE(sdk::call(loaded.engine()->open, &config, &engine).ok());
    const std::vector<int32_t> prompt = {1, 2, 3};
    auto request = sdk::sized<assay_request>();
    request.ids = sdk::view(std::span<const int32_t>(prompt));
    request.max_new_tokens = 1;
    request.sampling.temperature = 1;
    request.sampling.top_k = 1;
    ASSERT_TRUE(sdk::call(loaded.engine()->submit, engine, &request).ok());
    const assay_event* events = nullptr;
    size_t count = 0;
    size_t pending = 9;
    ASSERT_TRUE(sdk::call(loaded.engine()->step, engine, &events, &count, &pending).ok());
    ASSERT_EQ(count, 2U);
    EXPECT_EQ(pending, 0U);
    EXPECT_EQ(events[0].kind, static_cast<uint32_t>(ASSAY_EVENT_TOKEN)) << "tokens are streamed";
    EXPECT_EQ(events[0].token, toy_argmax(model, prompt));
    EXPECT_THAT(sdk::ids(events[1].result->tokens), testing::ElementsAre(toy_argmax(model, prompt)));
    loaded.engine()->close(engine);
    EXPECT_EQ(model.caches, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Engine,
                         testing::Values("static_legacy", "buffered", "replay", "process", "openai", "faulty",
                                         "example_minimal"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace assay::engines
