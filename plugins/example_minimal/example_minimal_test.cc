#include <gmock/gmock.h>

#include "assay/sdk.hpp"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"

namespace assay {
namespace {

using testing::HasSubstr;

class ExampleMinimal : public testing::Test {
 protected:
  void SetUp() override {
    const auto failure =
        plugin::load(ASSAY_BINARY_DIR "/lib/assay/plugins/engine_example_minimal.so", plugin::silent_host(), &plugin_);
    ASSERT_FALSE(failure.has_value()) << failure->message;
    table_ = plugin_.engine();
    auto config = sdk::sized<assay_engine_config>();
    ASSERT_TRUE(sdk::call(table_->open, &config, &engine_).ok());
  }
  void TearDown() override {
    if (engine_ != nullptr) table_->close(engine_);
  }

  Status submit(uint64_t id, const std::string& text) {
    auto request = sdk::sized<assay_request>();
    request.id = id;
    request.text = sdk::view(text);
    return sdk::call(table_->submit, engine_, &request);
  }

  plugin::Plugin plugin_;
  const assay_engine_table* table_ = nullptr;
  void* engine_ = nullptr;
};

TEST_F(ExampleMinimal, AnswersEveryRequestWithItsPrompt) {
  ASSERT_TRUE(submit(3, "one").ok());
  ASSERT_TRUE(submit(4, "two").ok());
  ASSERT_TRUE(submit(5, "three").ok());
  ASSERT_TRUE(sdk::call(table_->cancel, engine_, 4).ok());
  EXPECT_EQ(sdk::call(table_->cancel, engine_, 4).code(), StatusCode::kNotFound);
  const assay_event* events = nullptr;
  size_t count = 0;
  size_t pending = 9;
  ASSERT_TRUE(sdk::call(table_->step, engine_, &events, &count, &pending).ok());
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(pending, 0U);
  EXPECT_EQ(events[0].id, 3U);
  EXPECT_EQ(sdk::text(events[0].result->text), "one");
  EXPECT_EQ(events[1].id, 5U);
  EXPECT_EQ(sdk::text(events[1].result->prompt), "three");
}

TEST_F(ExampleMinimal, ForgetsEverythingAtAReset) {
  ASSERT_TRUE(submit(3, "one").ok());
  ASSERT_TRUE(sdk::call(table_->reset, engine_).ok());
  const assay_event* events = nullptr;
  size_t count = 9;
  size_t pending = 9;
  ASSERT_TRUE(sdk::call(table_->step, engine_, &events, &count, &pending).ok());
  EXPECT_EQ(count, 0U);
}

TEST_F(ExampleMinimal, RefusesWhatItDoesNotKnow) {
  auto request = sdk::sized<assay_request>();
  const int32_t id = 1;
  request.ids = {&id, 1};
  EXPECT_EQ(sdk::call(table_->submit, engine_, &request).code(), StatusCode::kUnsupported);
  auto config = sdk::sized<assay_engine_config>();
  config.options = sdk::view(std::string_view(R"({"x": 1})"));
  void* other = nullptr;
  EXPECT_THAT(sdk::call(table_->open, &config, &other).message(), HasSubstr("it has none"));
}

}  // namespace
}  // namespace assay
