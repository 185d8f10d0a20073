// That an engine keeps nothing of one request for the next, and what cancel, reset and failures leave behind.
#include <algorithm>
#include <numeric>

#include "plugins/engines/static_legacy/static_fixture.h"

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class State : public StaticLegacy {
 protected:
  // Requests of different lengths, greedy and drawn ones, each told apart by its prompt_index.
  static std::vector<ToyRequest> requests() {
    std::vector<ToyRequest> made;
    for (const char* text : {"1 2 3 4 5 6 7", "1", "9 8 7", "1 2 3 4", "30 31", "1 2 3 5", "9 8 7 6 5 4 3 2 1"}) {
      ToyRequest request{
          .text = text, .max_new_tokens = 6, .top_n = 3, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_ROUTING};
      request.sampling.prompt_index = made.size();
      made.push_back(request);
    }
    return made;
  }

  void expect_equal(const EngineResult& a, const EngineResult& b) {
    EXPECT_EQ(a.prompt, b.prompt);
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
    EXPECT_EQ(a.generated_logprobs, b.generated_logprobs);
    EXPECT_EQ(a.prompt_top_n.ids, b.prompt_top_n.ids);
    EXPECT_EQ(a.prompt_top_n.logprobs, b.prompt_top_n.logprobs);
    EXPECT_EQ(a.generated_top_n.ids, b.generated_top_n.ids);
    EXPECT_EQ(a.generated_top_n.logprobs, b.generated_top_n.logprobs);
    EXPECT_EQ(a.routing, b.routing);
  }
};

// Every order and every batch size gives each request the result that it has alone on a fresh engine.
TEST_F(State, DoesNotLeakFromOneRequestIntoAnother) {
  model_.moe_layers = 2;
  model_.moe_topk = 2;
  for (const int32_t top_k : {1, 0}) {
    std::vector<ToyRequest> all = requests();
    for (ToyRequest& request : all) request.sampling.top_k = top_k;
    std::vector<EngineResult> alone;
    for (const ToyRequest& request : all) {
      open(R"({"max_requests": 1})");
      alone.push_back(std::move(run({request}).finished.at(0)));
    }
    for (const char* options : {R"({"max_requests": 1, "block_size": 3})", R"({"max_requests": 2})",
                                R"({"max_requests": 4, "block_size": 5})"}) {
      open(options);
      std::vector<size_t> order(all.size());
      std::iota(order.begin(), order.end(), 0);
      for (int permutation = 0; permutation < 7; ++permutation) {
        std::vector<ToyRequest> permuted;
        for (size_t i : order) permuted.push_back(all[i]);
        const Outcome outcome = run(permuted);
        ASSERT_EQ(outcome.finished.size(), all.size());
        for (size_t i = 0; i < order.size(); ++i) {
          SCOPED_TRACE(testing::Message() << options << " top_k " << top_k << " request " << order[i]);
          expect_equal(outcome.finished.at(i), alone[order[i]]);
        }
        ASSERT_TRUE(engine_->reset().ok());
        std::rotate(order.begin(), order.begin() + 3, order.end());
        std::swap(order[0], order[1]);
      }
    }
  }
}

TEST_F(State, KeepsOneCacheForTheLifeOfTheEngine) {
  open(R"({"max_requests": 2})");
  EXPECT_EQ(model_.caches, 1);
  run(requests());
  ASSERT_TRUE(engine_->reset().ok());
  run(requests());
  EXPECT_EQ(model_.caches, 1);
  engine_.reset();
  EXPECT_EQ(model_.caches, 0);
}

TEST_F(State, CancelsWaitingAndRunningRequests) {
  open(R"({"max_requests": 2})");
  const std::vector<ToyRequest> all = requests();
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(submit(engine_.get(), i, all[i]).ok());
  Outcome outcome;
  ASSERT_TRUE(step(engine_.get(), &outcome).ok());
  ASSERT_TRUE(engine_->cancel(0).ok());
  ASSERT_TRUE(engine_->cancel(3).ok());
  EXPECT_EQ(engine_->cancel(0).code(), StatusCode::kNotFound);
  EXPECT_EQ(engine_->cancel(17).code(), StatusCode::kNotFound);
  EXPECT_EQ(engine_->pending(), 4U) << "their events are due";
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_THAT(outcome.order, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(outcome.failed.at(0).code(), StatusCode::kCancelled);
  EXPECT_EQ(outcome.failed.at(3).code(), StatusCode::kCancelled);
  expect_plain(outcome.finished.at(1), all[1], 6);
  expect_plain(outcome.finished.at(2), all[2], 6);
}

TEST_F(State, CancelsAWholeBatch) {
  open(R"({"max_requests": 2})");
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(submit(engine_.get(), i, requests()[i]).ok());
  Outcome outcome;
  ASSERT_TRUE(step(engine_.get(), &outcome).ok());
  ASSERT_TRUE(engine_->cancel(0).ok());
  ASSERT_TRUE(engine_->cancel(1).ok());
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_EQ(outcome.failed.size(), 2U);
  expect_plain(outcome.finished.at(2), requests()[2], 6);
}

TEST_F(State, DropsEverythingAtAResetInTheMiddleOfABatch) {
  open(R"({"max_requests": 2})");
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(submit(engine_.get(), i + 5, requests()[i]).ok());
  Outcome dropped;
  ASSERT_TRUE(step(engine_.get(), &dropped).ok());
  ASSERT_TRUE(engine_->reset().ok());
  EXPECT_EQ(engine_->pending(), 0U);
  const std::vector<ToyRequest> again = {requests()[2], requests()[0]};
  const Outcome outcome = run(again);
  ASSERT_EQ(outcome.finished.size(), 2U);
  for (size_t i = 0; i < 2; ++i) expect_plain(outcome.finished.at(i), again[i], 6);
}

TEST_F(State, AsksForAscendingIds) {
  open("{}");
  ASSERT_TRUE(submit(engine_.get(), 4, {.text = "1"}).ok());
  EXPECT_THAT(submit(engine_.get(), 4, {.text = "1"}).message(), HasSubstr("request id 4 after 4"));
  EXPECT_EQ(submit(engine_.get(), 3, {.text = "1"}).code(), StatusCode::kInvalid);
  EXPECT_EQ(engine_->pending(), 1U);
}

TEST_F(State, GoesOnAfterABatchThatTheBackendRefused) {
  model_.fail_at = 2;
  model_.failure = {StatusCode::kExhausted, "toy: out of scratch memory"};
  open(R"({"max_requests": 2})");
  const std::vector<ToyRequest> all = requests();
  const Outcome outcome = run(all);
  ASSERT_EQ(outcome.failed.size(), 2U);
  EXPECT_EQ(outcome.failed.at(0).message(), "toy: out of scratch memory");
  for (size_t i = 2; i < all.size(); ++i) expect_plain(outcome.finished.at(i), all[i], 6);
}

TEST_F(State, IsBrokenByADeviceFault) {
  model_.fail_at = 1;
  open("{}");
  ASSERT_TRUE(submit(engine_.get(), 0, {.text = "1 2"}).ok());
  Outcome outcome;
  const Status status = drain(engine_.get(), &outcome);
  EXPECT_EQ(status.code(), StatusCode::kInfra);
  EXPECT_EQ(status.message(), "toy device is gone");
}

TEST_F(State, DrawsByPromptIndexAndNotByPlace) {
  open(R"({"max_requests": 4})");
  std::vector<ToyRequest> same(2, {.text = "1 2 3"});
  for (ToyRequest& request : same) request.sampling.top_k = 0;
  same[1].sampling.prompt_index = 1;
  const Outcome apart = run(same);
  EXPECT_NE(apart.finished.at(0).tokens, apart.finished.at(1).tokens);
  ASSERT_TRUE(engine_->reset().ok());
  same[0].sampling.prompt_index = 1;
  const Outcome alike = run(same);
  EXPECT_EQ(alike.finished.at(0).tokens, apart.finished.at(1).tokens);
  EXPECT_EQ(alike.finished.at(1).tokens, apart.finished.at(1).tokens);
}

TEST_F(State, RefusesToOpenWithBadOptionsOrWithoutABackend) {
  const auto failure = [&](const std::string& options, const std::string& tokenizer) {
    return open_on_toy<StaticEngine>(&model_, host_, options, tokenizer).status().message();
  };
  EXPECT_THAT(failure(R"({"max_requests": 0})", "{}"), HasSubstr("max_requests is 0"));
  EXPECT_THAT(failure(R"({"max_request": 1})", "{}"),
              HasSubstr("unknown member max_request (did you mean 'max_requests'?);"));
  EXPECT_THAT(failure("{}", R"({"type": "NoSuchTokenizer"})"), HasSubstr("NoSuchTokenizer"));
  EXPECT_THAT(failure("{}", R"({"type": 3})"), HasSubstr("tokenizer description: type is 3"));
  EXPECT_THAT(failure(R"({"max_requests": 65536, "max_sequence_length": 16777216, "block_size": 1})", "{}"),
              HasSubstr("blocks"));
  auto config = sdk::sized<assay_engine_config>();
  EXPECT_THAT(StaticEngine::open(config, Host()).status().message(), HasSubstr("no backend"));
}

}  // namespace
}  // namespace assay::engines
