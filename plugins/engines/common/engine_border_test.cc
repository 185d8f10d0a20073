#include "plugins/engines/common/engine_border.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace assay::engines {
namespace {

using testing::ElementsAre;

// Finishes what it got, one request a step; id 13 throws.
class Stub {
 public:
  static Result<std::unique_ptr<Stub>> open(const assay_engine_config& config, const Host& /*host*/) {
    if (sdk::text(config.options) == "bad") return invalid("stub: bad options");
    return std::make_unique<Stub>();
  }
  Status submit(const assay_request& request) {
    if (request.id == 13) throw std::runtime_error("thirteen");
    ids_.push_back(request.id);
    return {};
  }
  Status cancel(uint64_t id) { return not_found("stub: no request " + std::to_string(id)); }
  Status step(std::vector<EngineEvent>* events) {
    if (ids_.empty()) return internal("stub: nothing to do");
    EngineResult result;
    result.id = ids_.back();
    result.prompt = "p";
    result.tokens = {7, 8};
    result.generated_logprobs = {-0.5, -0.25};
    result.generated_top_n = {
        .ids = {7, 3, 8}, .logprobs = {-0.5, -1, -0.25}, .texts = {"a", std::nullopt, "b"}, .counts = {2, 1}};
    result.routing = {1, 2, 3, 4};
    result.routing_tokens = 2;
    result.moe_layers = 1;
    result.moe_topk = 2;
    result.routing_margins = {0.5F, 0.25F};
    result.generated_ranks = {0, 3};
    result.generated_logits = {9, 8.5};
    events->push_back(token_event(result.id, 7));
    events->push_back(finished_event(std::move(result)));
    events->push_back(failed_event(99, invalid("too long")));
    ids_.pop_back();
    return {};
  }
  size_t pending() const { return ids_.size(); }
  Status reset() {
    ids_.clear();
    return {};
  }

 private:
  std::vector<uint64_t> ids_;
};

class Border : public testing::Test {
 protected:
  Border() {
    auto config = sdk::sized<assay_engine_config>();
    EXPECT_TRUE(sdk::call(table_->open, &config, &engine_).ok());
  }
  ~Border() override { table_->close(engine_); }

  Status submit(uint64_t id) {
    auto request = sdk::sized<assay_request>();
    request.id = id;
    return sdk::call(table_->submit, engine_, &request);
  }

  const assay_engine_table* table_ = EngineBorder<Stub>::table();
  void* engine_ = nullptr;
};

TEST_F(Border, HandsOutEventsWhoseViewsHoldUntilTheNextStep) {
  ASSERT_TRUE(submit(4).ok());
  ASSERT_TRUE(submit(5).ok());
  const assay_event* events = nullptr;
  size_t count = 0;
  size_t pending = 9;
  ASSERT_TRUE(sdk::call(table_->step, engine_, &events, &count, &pending).ok());
  ASSERT_EQ(count, 3U);
  EXPECT_EQ(pending, 1U);
  EXPECT_EQ(events[0].kind, static_cast<uint32_t>(ASSAY_EVENT_TOKEN));
  EXPECT_EQ(events[0].token, 7);
  ASSERT_EQ(events[1].kind, static_cast<uint32_t>(ASSAY_EVENT_FINISHED));
  const assay_result& result = *events[1].result;
  EXPECT_EQ(result.id, 5U);
  EXPECT_EQ(sdk::text(result.prompt), "p");
  EXPECT_EQ(result.text.data, nullptr) << "absent is not empty";
  EXPECT_THAT(sdk::ids(result.tokens), ElementsAre(7, 8));
  EXPECT_THAT(sdk::doubles(result.generated_logprobs), ElementsAre(-0.5, -0.25));
  ASSERT_EQ(result.generated_top_n.positions, 2U);
  EXPECT_EQ(sdk::text(result.generated_top_n.entries[0].text), "a");
  EXPECT_EQ(result.generated_top_n.entries[1].text.data, nullptr);
  EXPECT_EQ(result.generated_top_n.entries[2].id, 8);
  EXPECT_EQ(result.generated_top_n.counts[1], 1U);
  EXPECT_EQ(result.routing[3], 4);
  EXPECT_EQ(result.routing_tokens, 2U);
  ASSERT_TRUE(ASSAY_KNOWS(&result, routing_margins));
  EXPECT_EQ(result.routing_margins[1], 0.25F);
  EXPECT_THAT(sdk::ids(result.generated_ranks), ElementsAre(0, 3));
  EXPECT_THAT(sdk::doubles(result.generated_logits), ElementsAre(9, 8.5));
  EXPECT_EQ(events[2].kind, static_cast<uint32_t>(ASSAY_EVENT_FAILED));
  EXPECT_EQ(events[2].code, ASSAY_INVALID);
  EXPECT_EQ(sdk::text(events[2].message), "too long");
}

TEST_F(Border, TurnsExceptionsAndFailuresIntoCodes) {
  EXPECT_EQ(submit(13).code(), StatusCode::kInternal);
  EXPECT_THAT(submit(13).message(), testing::HasSubstr("thirteen"));
  EXPECT_EQ(sdk::call(table_->cancel, engine_, 3).code(), StatusCode::kNotFound);
  const assay_event* events = nullptr;
  size_t count = 77;
  size_t pending = 77;
  EXPECT_EQ(sdk::call(table_->step, engine_, &events, &count, &pending).code(), StatusCode::kInternal);
  EXPECT_EQ(count, 77U) << "outputs are left alone on failure";
  auto config = sdk::sized<assay_engine_config>();
  config.options = sdk::view(std::string_view("bad"));
  void* other = nullptr;
  EXPECT_EQ(sdk::call(table_->open, &config, &other).code(), StatusCode::kInvalid);
  EXPECT_EQ(other, nullptr);
}

TEST_F(Border, ReadsAClockWithoutAHost) {
  const Host host;
  const uint64_t before = host.now_ns();
  EXPECT_GE(host.now_ns(), before);
  host.log(ASSAY_LOG_INFO, "goes nowhere");
}

}  // namespace
}  // namespace assay::engines
