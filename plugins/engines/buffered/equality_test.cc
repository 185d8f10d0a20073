// A request's result depends on the request alone, bit for bit, whatever the engine does around it.
#include <algorithm>
#include <numeric>

#include "plugins/engines/buffered/buffered_fixture.h"
#include "plugins/engines/static_legacy/engine.h"

namespace assay::engines {
namespace {

using nlohmann::json;

class Equality : public Buffered {
 protected:
  Equality() {
    model_.moe_layers = 2;
    model_.moe_topk = 2;
    model_.writes_margins = true;
  }

  // `count` requests of all kinds: greedy and drawn, with and without each output, forced ones, many with a beginning
  // in common. Prompts of `shortest` to about `longest` tokens.
  static std::vector<ToyRequest> requests(size_t count, size_t shortest, size_t longest) {
    std::vector<ToyRequest> made;
    for (size_t i = 0; i < count; ++i) {
      ToyRequest request;
      const size_t length = shortest + i * 37 % (longest - shortest + 1);
      for (size_t t = 0; t < length; ++t) {
        const size_t own = t < length / 2 ? 0 : i;  // the first half is that of everybody
        request.ids.push_back(static_cast<int32_t>((t * 7 + t / 11 + own * 13) % 62));
      }
      request.max_new_tokens = static_cast<int32_t>(3 + i % 5);
      request.want = i % 4 == 3 ? 0 : ASSAY_WANT_LOGPROBS;
      if (i % 3 == 0) request.want |= ASSAY_WANT_ROUTING;
      if (i % 5 == 2) request.want |= ASSAY_WANT_LOGITS;
      request.top_n = i % 4 == 1 ? 3 : 0;
      request.sampling.top_k = i % 2 == 0 ? 1 : 0;
      request.sampling.prompt_index = i;
      if (i % 6 == 4) request.forced = {5, 6};
      made.push_back(request);
    }
    return made;
  }

  // What each request gives alone on a fresh engine that does nothing special.
  const std::vector<EngineResult>& alone(const std::vector<ToyRequest>& all, const json& options = json::object()) {
    alone_.clear();
    for (const ToyRequest& request : all) {
      open(options.dump());
      alone_.push_back(std::move(run({request}).finished.at(0)));
    }
    return alone_;
  }

  Outcome expect_alone(const std::vector<ToyRequest>& all, const json& options) {
    open(options.dump());
    Outcome outcome = run(all);
    EXPECT_EQ(outcome.finished.size(), all.size());
    for (size_t i = 0; i < all.size() && outcome.finished.contains(i); ++i) {
      SCOPED_TRACE(testing::Message() << options << " request " << i);
      expect_equal(outcome.finished.at(i), alone_[i]);
    }
    expect_all_blocks_free();
    return outcome;
  }

  std::vector<EngineResult> alone_;
};

TEST_F(Equality, OfEveryBatchSize) {
  const std::vector<ToyRequest> all = requests(33, 1, 60);
  alone(all);
  for (const int size : {1, 2, 3, 7, 8, 16, 33}) {
    expect_alone(all, {{"max_requests", size}, {"block_size", 16}});
    const auto largest =
        std::max_element(model_.forwards.end() - static_cast<ptrdiff_t>(engine_->steps()), model_.forwards.end(),
                         [](const ToyForward& a, const ToyForward& b) { return a.counts.size() < b.counts.size(); });
    EXPECT_EQ(largest->counts.size(), static_cast<size_t>(size)) << "a batch of that size did run";
  }
}

TEST_F(Equality, OfEveryChunkSizeOnPromptsOfMoreThan512Tokens) {
  const std::vector<ToyRequest> all = requests(5, 513, 700);
  alone(all);
  for (const int chunk : {1, 7, 255, 256, 257}) {
    const Outcome outcome = expect_alone(all, {{"chunked_prefill", true}, {"max_chunk", chunk}});
    for (const auto& [id, result] : outcome.finished) EXPECT_GE(counter(result, "chunks"), (513 + chunk - 1) / chunk);
  }
  const Outcome budget = expect_alone(all, {{"chunked_prefill", true}, {"max_tokens", 64}, {"max_requests", 4}});
  EXPECT_GE(counted(budget, "chunks"), 5 * 513 / 64);
  for (const ToyForward& forward : model_.forwards) EXPECT_FALSE(forward.counts.empty());
}

TEST_F(Equality, OfEveryOrderOfArrival) {
  std::vector<ToyRequest> all = requests(9, 1, 40);
  alone(all);
  for (const json& options : {json{{"requests_per_step", 1}}, json{{"requests_per_step", 4}},
                              json{{"requests_per_second", 50}, {"virtual_step_seconds", 0.01}, {"seed", 3}}}) {
    expect_alone(all, options);
  }
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  open(R"({"max_requests": 3, "block_size": 8})");
  for (int permutation = 0; permutation < 5; ++permutation) {
    std::rotate(order.begin(), order.begin() + 4, order.end());
    std::swap(order[0], order[1]);
    std::vector<ToyRequest> permuted;
    for (const size_t i : order) permuted.push_back(all[i]);
    const Outcome outcome = run(permuted);
    for (size_t i = 0; i < order.size(); ++i) expect_equal(outcome.finished.at(i), alone_[order[i]]);
    ASSERT_TRUE(engine_->reset().ok());
  }
}

TEST_F(Equality, OfPreemptedRequestsAndThoseThatWereNot) {
  std::vector<ToyRequest> all = requests(8, 10, 40);
  for (ToyRequest& request : all) request.max_new_tokens = 24;
  alone(all);
  for (const bool chunked : {false, true}) {
    const json options = {{"block_size", 4}, {"block_count", 20}, {"max_requests", 8}, {"chunked_prefill", chunked}};
    const Outcome outcome = expect_alone(all, options);
    EXPECT_GT(counted(outcome, "preemptions"), 0);
    EXPECT_GT(counted(outcome, "recomputed_tokens"), 0);
    EXPECT_EQ(counter(outcome.finished.at(0), "preemptions"), 0) << "the oldest keeps its blocks";
  }
}

TEST_F(Equality, WithAndWithoutThePrefixCache) {
  std::vector<ToyRequest> all = requests(12, 530, 560);
  for (ToyRequest& request : all) request.want &= ~static_cast<uint32_t>(ASSAY_WANT_ROUTING);
  const json skip = {{"skip_prompt_logprobs", true}};
  alone(all, skip);
  for (const char* policy : {"ref_zero", "lru"}) {
    for (const int per_step : {0, 1}) {
      for (const int block_count : {0, 60}) {
        json options = {{"prefix_caching", true},        {"prefix_caching_eviction_policy", policy},
                        {"requests_per_step", per_step}, {"block_size", 32},
                        {"skip_prompt_logprobs", true},  {"max_requests", 5},
                        {"chunked_prefill", true},       {"max_tokens", 300}};
        if (block_count > 0) options["block_count"] = block_count;
        const Outcome outcome = expect_alone(all, options);
        EXPECT_GT(counted(outcome, "cached_tokens"), 0) << options;
        uint64_t prefill = 0;
        uint64_t prompts = 0;
        for (const auto& [id, result] : outcome.finished) prefill += result.prefill_tokens;
        for (const auto& [id, result] : outcome.finished) prompts += result.prompt_ids.size();
        EXPECT_LT(prefill, prompts) << "what the cache held was not computed";
      }
    }
  }
}

TEST_F(Equality, OfRequestsThatWantTheirPromptAndComputeAllOfIt) {
  const std::vector<ToyRequest> all = requests(6, 100, 120);
  alone(all);
  const Outcome outcome =
      expect_alone(all, {{"prefix_caching", true}, {"prefix_caching_eviction_policy", "lru"}, {"block_size", 8}});
  EXPECT_EQ(counter(outcome.finished.at(0), "cached_tokens"), 0);
}

TEST_F(Equality, OfPreemptionUnderAPrefixCacheThatEvicts) {
  std::vector<ToyRequest> all = requests(10, 20, 44);
  for (ToyRequest& request : all) request.max_new_tokens = 20;
  alone(all);
  for (const char* policy : {"ref_zero", "lru"}) {
    const json options = {{"block_size", 4},
                          {"block_count", 24},
                          {"max_requests", 6},
                          {"prefix_caching", true},
                          {"chunked_prefill", true},
                          {"max_chunk", 5},
                          {"prefix_caching_eviction_policy", policy}};
    const Outcome outcome = expect_alone(all, options);
    EXPECT_GT(counted(outcome, "preemptions"), 0);
  }
  EXPECT_GT(engine_->scheduler().evictions(), 0U);
}

TEST_F(Equality, OfTheStaticEngine) {
  std::vector<ToyRequest> all = requests(12, 1, 50);
  for (ToyRequest& request : all) {  // the static engine takes both from the first request of a batch
    request.max_new_tokens = 6;
    request.sampling.top_k = 0;
  }
  alone(all);
  Result<std::unique_ptr<StaticEngine>> engine = open_on_toy<StaticEngine>(&model_, host_, R"({"max_requests": 5})");
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  for (size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(submit(engine->get(), i, all[i]).ok());
  Outcome outcome;
  ASSERT_TRUE(drain(engine->get(), &outcome).ok());
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    expect_equal(outcome.finished.at(i), alone_[i]);
  }
}

}  // namespace
}  // namespace assay::engines
