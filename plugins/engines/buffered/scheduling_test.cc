// Who goes into a step, and what becomes of those who cannot.
#include <random>

#include "plugins/engines/buffered/buffered_fixture.h"

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Scheduling = Buffered;

TEST_F(Scheduling, BatchesDecodesWithThePromptsOfThoseThatCome) {
  open(R"({"requests_per_step": 1})");
  const std::vector<ToyRequest> all = {{.text = "1 2 3", .max_new_tokens = 3}, {.text = "4 5", .max_new_tokens = 3}};
  const Outcome outcome = run(all);
  for (size_t i = 0; i < 2; ++i) expect_plain(outcome.finished.at(i), all[i], 3);
  ASSERT_EQ(model_.forwards.size(), 4U);
  EXPECT_EQ(counter(outcome.finished.at(0), "batch"), 2);
  EXPECT_EQ(counter(outcome.finished.at(0), "steps"), 3);
  EXPECT_EQ(counter(outcome.finished.at(0), "chunks"), 1);
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(3));
  EXPECT_THAT(model_.forwards[1].counts, ElementsAre(1, 2)) << "one decodes, the other one prefills";
  EXPECT_THAT(model_.forwards[2].counts, ElementsAre(1, 1));
  EXPECT_THAT(model_.forwards[3].counts, ElementsAre(1));
}

TEST_F(Scheduling, RefillsThePlaceOfARequestThatEnded) {
  model_.prefers = [](std::span<const int32_t> sequence) { return sequence[0] == 5 ? kToyEod : -1; };
  open(R"({"max_requests": 2})");
  const Outcome outcome = run({{.text = "5 1"}, {.text = "1 2"}, {.text = "3 4"}});
  EXPECT_THAT(outcome.order, ElementsAre(0, 1, 2));
  EXPECT_THAT(model_.forwards[1].counts, ElementsAre(1, 2)) << "the third one did not wait for the second";
}

TEST_F(Scheduling, KeepsToTheTokensOfAStep) {
  open(R"({"max_tokens": 5, "max_requests": 4})");
  run({{.text = "1 2 3"}, {.text = "4 5 6"}, {.text = "7 8"}});
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(3)) << "a whole prompt or none of it";
  EXPECT_THAT(model_.forwards[1].counts, ElementsAre(1, 3));
  EXPECT_THAT(model_.forwards[2].counts, ElementsAre(1, 1, 2));
}

TEST_F(Scheduling, SplitsPromptsAndAvoidsALastPartOfOneToken) {
  open(R"({"max_tokens": 4, "max_requests": 4, "chunked_prefill": true})");
  run({{.text = "1 2 3 4 5", .max_new_tokens = 1}, {.text = "6 7 8", .max_new_tokens = 1}});
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(3)) << "3 + 2, not 4 + 1; nobody goes in behind a part";
  EXPECT_THAT(model_.forwards[1].counts, ElementsAre(2, 1))
      << "the next one gets the rest of the step: 1 + 2, not 2 + 1";
  EXPECT_THAT(model_.forwards[2].counts, ElementsAre(2));
}

TEST_F(Scheduling, WaitsForBlocksAndPromisesNoneTwice) {
  open(R"({"block_size": 2, "block_count": 4, "max_requests": 4})");
  const Outcome outcome = run({{.text = "1 2 3", .max_new_tokens = 2}, {.text = "4 5 6 7", .max_new_tokens = 2}});
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(3)) << "2 blocks are left, the second request needs 3";
  EXPECT_EQ(outcome.finished.size(), 2U);
  EXPECT_EQ(counted(outcome, "preemptions"), 0);
}

TEST_F(Scheduling, PreemptsTheYoungestAndResumesItFirst) {
  open(R"({"block_size": 2, "block_count": 5, "max_requests": 3})");
  const std::vector<ToyRequest> all = {
      {.text = "1 2", .max_new_tokens = 6}, {.text = "3 4", .max_new_tokens = 6}, {.text = "5 6", .max_new_tokens = 6}};
  const Outcome outcome = run(all);
  for (size_t i = 0; i < 3; ++i) expect_plain(outcome.finished.at(i), all[i], 6);
  EXPECT_THAT(outcome.order, ElementsAre(0, 1, 2));
  EXPECT_EQ(counter(outcome.finished.at(0), "preemptions"), 0);
  EXPECT_GT(counter(outcome.finished.at(1), "preemptions"), 0);
  EXPECT_GT(counter(outcome.finished.at(1), "recomputed_tokens"), 0);
  EXPECT_EQ(outcome.streamed.at(1), outcome.finished.at(1).tokens) << "no token is streamed twice";
  expect_all_blocks_free();
}

TEST_F(Scheduling, LetsAPrefixBeComputedOnce) {
  open(R"({"block_size": 4, "prefix_caching": true})");
  std::vector<ToyRequest> same(3, {.text = "1 2 3 4 5 6 7 8 9 10", .max_new_tokens = 2, .want = 0});
  const Outcome outcome = run(same);
  EXPECT_THAT(model_.forwards[0].counts, ElementsAre(10)) << "the others wait for its blocks";
  EXPECT_THAT(model_.forwards[1].counts, ElementsAre(1, 2, 2));
  EXPECT_EQ(counter(outcome.finished.at(1), "cached_tokens"), 8);
  EXPECT_EQ(outcome.finished.at(1).prefill_tokens, 2U);
  for (size_t i = 1; i < 3; ++i) EXPECT_EQ(outcome.finished.at(i).tokens, outcome.finished.at(0).tokens);
}

TEST_F(Scheduling, ComputesTwoTokensOfAPromptAtLeast) {
  open(R"({"block_size": 4, "prefix_caching": true, "prefix_caching_eviction_policy": "lru"})");
  const ToyRequest request{.text = "1 2 3 4 5 6 7 8 9", .max_new_tokens = 2, .want = 0};
  run({request});
  ASSERT_TRUE(submit(engine_.get(), 1, request).ok());
  Outcome outcome;
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_EQ(outcome.finished.at(1).prefill_tokens, 5U) << "8 tokens match, but 9 - 8 is less than 2";
}

TEST_F(Scheduling, TakesMemoryForWhatIsAskedOfItAndGrowsWhenIdle) {
  open(R"({"block_size": 4, "block_count": 1000})");
  run({{.text = "1 2 3", .max_new_tokens = 2}});
  EXPECT_EQ(engine_->scheduler().blocks(), 1U);
  ASSERT_TRUE(engine_->reset().ok());
  const ToyRequest longer{.text = "1 2 3", .max_new_tokens = 30};
  const Outcome outcome = run({longer});
  expect_plain(outcome.finished.at(0), longer, 30);
  EXPECT_EQ(engine_->scheduler().blocks(), 8U);
  EXPECT_EQ(model_.caches, 1);
}

TEST_F(Scheduling, GrowsForRequestsThatComeWhileOthersRun) {
  open(R"({"block_size": 4, "block_count": 1000})");
  const std::vector<ToyRequest> all = {{.text = "1 2 3", .max_new_tokens = 9},
                                       {.text = "4 5 6 7 8 9", .max_new_tokens = 20},
                                       {.text = "9 8", .max_new_tokens = 7}};
  ASSERT_TRUE(submit(engine_.get(), 0, all[0]).ok());
  Outcome outcome;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step(engine_.get(), &outcome).ok());
  EXPECT_EQ(engine_->scheduler().blocks(), 3U);
  for (size_t i = 1; i < 3; ++i) ASSERT_TRUE(submit(engine_.get(), i, all[i]).ok());
  ASSERT_TRUE(step(engine_.get(), &outcome).ok());
  EXPECT_EQ(engine_->scheduler().running().size(), 3U) << "they run with it, not behind it";
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  for (size_t i = 0; i < 3; ++i) expect_plain(outcome.finished.at(i), all[i], all[i].max_new_tokens);
  EXPECT_EQ(counter(outcome.finished.at(0), "preemptions"), 1) << "its keys and values moved by being computed again";
  EXPECT_EQ(outcome.streamed.at(0), outcome.finished.at(0).tokens);
  EXPECT_EQ(model_.caches, 1);
  expect_all_blocks_free();
}

TEST_F(Scheduling, MakesDoWithTheMemoryThatThereIs) {
  model_.memory_blocks = 5;
  open(R"({"block_size": 4, "block_count": 1000, "requests_per_step": 3})");
  std::vector<ToyRequest> all(6, {.text = "1 2 3", .max_new_tokens = 9});
  all[1].max_new_tokens = 30;  // 8 blocks
  all[4].max_new_tokens = 40;  // comes when it is known how small the buffer is
  const Outcome outcome = run(all);
  EXPECT_THAT(outcome.failed.at(1).message(), HasSubstr("KV buffer: toy: no memory for 8 blocks"));
  EXPECT_THAT(outcome.failed.at(4).message(), HasSubstr("the KV buffer holds"));
  for (const size_t i : {0, 2, 3, 5}) expect_plain(outcome.finished.at(i), all[i], 9);
  EXPECT_THAT(host_.lines(), testing::Contains(HasSubstr("KV blocks of 4 tokens; fewer requests run at once")));
}

TEST_F(Scheduling, SuspendsAndResumesWithoutATrace) {
  const std::vector<ToyRequest> all = {{.text = "1 2 3", .max_new_tokens = 7, .top_n = 2},
                                       {.text = "4 5 6 7 8 9", .max_new_tokens = 9},
                                       {.text = "9 8", .max_new_tokens = 5}};
  for (const char* options : {R"({"suspend_interval": 3, "requests_per_step": 1})", R"({"suspend_interval": 1})",
                              R"({"suspend_interval": 2, "max_tokens": 4, "max_requests": 2, "block_size": 2,
                                  "chunked_prefill": true, "prefix_caching": true})"}) {
    open(options);
    const Outcome outcome = run(all);
    for (size_t i = 0; i < 3; ++i) {
      expect_plain(outcome.finished.at(i), all[i], all[i].max_new_tokens);
      EXPECT_GT(counter(outcome.finished.at(i), "preemptions"), 0) << options;
      EXPECT_EQ(outcome.streamed.at(i), outcome.finished.at(i).tokens);
    }
    expect_all_blocks_free();
  }
}

TEST_F(Scheduling, CancelsAtAnyTimeAndFreesTheBlocks) {
  const std::vector<ToyRequest> all(5, {.text = "1 2 3 4 5", .max_new_tokens = 5});
  for (int steps = 0; steps < 12; ++steps) {
    open(R"({"block_size": 2, "block_count": 9, "max_requests": 3, "requests_per_step": 2})");
    for (size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(submit(engine_.get(), i, all[i]).ok());
    Outcome outcome;
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(step(engine_.get(), &outcome).ok());
    size_t cancelled = 0;
    for (const uint64_t id : {0, 2, 4}) {
      const Status status = engine_->cancel(id);
      EXPECT_EQ(status.ok(), !outcome.finished.contains(id));
      cancelled += status.ok() ? 1 : 0;
      EXPECT_EQ(engine_->cancel(id).code(), StatusCode::kNotFound) << "over, or cancelled before";
    }
    ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
    EXPECT_EQ(outcome.failed.size(), cancelled);
    for (const auto& [id, status] : outcome.failed) EXPECT_EQ(status.code(), StatusCode::kCancelled);
    for (const auto& [id, result] : outcome.finished) expect_plain(result, all[id], 5);
    EXPECT_EQ(outcome.finished.size() + cancelled, all.size());
    expect_all_blocks_free();
  }
}

TEST_F(Scheduling, FailsWhatCannotRunAndFinishesTheRest) {
  open(R"({"block_size": 4, "block_count": 4, "max_requests": 4, "max_sequence_length": 40, "max_tokens": 12})");
  std::vector<ToyRequest> all(6, {.text = "1 2"});
  all[0].text = "";
  all[1].text = "1 2 3 4 5 6 7 8 9 10";
  all[2].max_new_tokens = 39;
  all[3].text = "1 2 3 4 5 6 7 8 9 10 11 12 13";
  all[3].max_new_tokens = 1;
  all[4].ids = {1, 64};
  const Outcome outcome = run(all);
  ASSERT_EQ(outcome.failed.size(), 5U);
  EXPECT_THAT(outcome.failed.at(0).message(), HasSubstr("prompt"));
  EXPECT_THAT(outcome.failed.at(1).message(),
              HasSubstr("prompt of 10 + 8 new tokens = 18 needs 5 blocks of 4 tokens, the KV buffer holds 4"));
  EXPECT_THAT(outcome.failed.at(2).message(), HasSubstr("= 41 is over the limit of 40 tokens"));
  EXPECT_THAT(outcome.failed.at(3).message(), HasSubstr("prompt of 13 tokens is over the 12 of a step"));
  EXPECT_THAT(outcome.failed.at(4).message(), HasSubstr("prompt token 1 is id 64"));
  expect_plain(outcome.finished.at(5), all[5], 8);
}

TEST_F(Scheduling, KeepsToThePositionsThatTheModelHas) {
  model_.max_positions = 6;
  open("{}");
  EXPECT_EQ(run({{.text = "1 2 3", .max_new_tokens = 4}}).finished.size(), 1U) << "the last token is not fed back";
  ASSERT_TRUE(engine_->reset().ok());
  EXPECT_THAT(run({{.text = "1 2 3", .max_new_tokens = 5}}).failed.at(0).message(),
              HasSubstr("needs 7 positions, the model has 6"));
}

TEST_F(Scheduling, GoesOnAfterAStepThatTheBackendRefused) {
  model_.fail_at = 1;
  model_.failure = {StatusCode::kExhausted, "toy: out of scratch memory"};
  open(R"({"max_requests": 2})");
  const std::vector<ToyRequest> all(4, {.text = "1 2"});
  const Outcome outcome = run(all);
  ASSERT_EQ(outcome.failed.size(), 2U);
  EXPECT_EQ(outcome.failed.at(1).message(), "toy: out of scratch memory");
  for (size_t i = 2; i < 4; ++i) expect_plain(outcome.finished.at(i), all[i], 8);
  expect_all_blocks_free();
}

TEST_F(Scheduling, IsBrokenByADeviceFault) {
  model_.fail_at = 1;
  open("{}");
  ASSERT_TRUE(submit(engine_.get(), 0, {.text = "1 2"}).ok());
  Outcome outcome;
  EXPECT_EQ(drain(engine_.get(), &outcome).message(), "toy device is gone");
}

TEST_F(Scheduling, DropsEverythingAtAReset) {
  open(R"({"max_requests": 2, "prefix_caching": true, "prefix_caching_eviction_policy": "lru", "block_size": 2})");
  const ToyRequest request{.text = "1 2 3 4 5 6", .want = 0};
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(submit(engine_.get(), i + 5, request).ok());
  Outcome dropped;
  ASSERT_TRUE(step(engine_.get(), &dropped).ok());
  ASSERT_TRUE(engine_->reset().ok());
  EXPECT_EQ(engine_->pending(), 0U);
  const Outcome outcome = run({request});
  EXPECT_EQ(counter(outcome.finished.at(0), "cached_tokens"), 0) << "prefixes are state too";
  EXPECT_EQ(outcome.finished.at(0).tokens, continuation(ids_of(request.text), 8));
}

TEST_F(Scheduling, AsksForAscendingIds) {
  open("{}");
  ASSERT_TRUE(submit(engine_.get(), 4, {.text = "1"}).ok());
  EXPECT_THAT(submit(engine_.get(), 4, {.text = "1"}).message(), HasSubstr("request id 4 after 4"));
  EXPECT_EQ(engine_->pending(), 1U);
}

// Any mix of lengths, options and cancellations ends, with every block free and every result the plain one.
TEST_F(Scheduling, ComesToAnEndOverRandomTraffic) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const nlohmann::json options = {{"block_size", 1 + random() % 5},
                                    {"block_count", 30 + random() % 20},
                                    {"max_requests", 1 + random() % 6},
                                    {"max_tokens", 6 + random() % 40},
                                    {"chunked_prefill", true},
                                    {"max_chunk", random() % 9},
                                    {"prefix_caching", random() % 2 == 0},
                                    {"prefix_caching_eviction_policy", random() % 2 == 0 ? "lru" : "ref_zero"},
                                    {"suspend_interval", random() % 4},
                                    {"requests_per_step", random() % 3}};
    SCOPED_TRACE(options);
    open(options.dump());
    std::vector<ToyRequest> all(8);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].ids.resize(1 + random() % 16);
      for (int32_t& id : all[i].ids) id = static_cast<int32_t>(random() % 2);
      all[i].max_new_tokens = static_cast<int32_t>(random() % 14);
      all[i].want = random() % 2 == 0 ? 0 : ASSAY_WANT_LOGPROBS;
      ASSERT_TRUE(submit(engine_.get(), i, all[i]).ok());
    }
    Outcome outcome;
    while (engine_->pending() > 0) {
      ASSERT_LT(engine_->steps(), 2000U);
      ASSERT_TRUE(step(engine_.get(), &outcome).ok());
      if (random() % 16 == 0) static_cast<void>(engine_->cancel(random() % all.size()));
    }
    EXPECT_EQ(outcome.finished.size() + outcome.failed.size(), all.size());
    for (const auto& [id, status] : outcome.failed) EXPECT_EQ(status.code(), StatusCode::kCancelled);
    for (const auto& [id, result] : outcome.finished) {
      EXPECT_EQ(result.tokens, continuation(all[id].ids, all[id].max_new_tokens));
    }
    expect_all_blocks_free();
  }
}

}  // namespace
}  // namespace assay::engines
