#include "plugins/engines/replay/replay.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plugins/engines/toy_backend/engine_driver.h"

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Replay : public testing::Test {
 protected:
  ~Replay() override { std::filesystem::remove(file_); }

  void record(const std::string& json) { std::ofstream(file_) << json; }

  Status open(nlohmann::json options = nlohmann::json::object()) {
    if (!options.contains("recorded")) options["recorded"] = file_.string();
    Result<std::unique_ptr<ReplayEngine>> engine = open_on_toy<ReplayEngine>(&model_, host_, options.dump());
    if (!engine) return engine.status();
    engine_ = *std::move(engine);
    return {};
  }

  Outcome run(const std::vector<uint64_t>& ids) {
    for (const uint64_t id : ids) EXPECT_TRUE(submit(engine_.get(), id, {}).ok());
    Outcome outcome;
    EXPECT_TRUE(drain(engine_.get(), &outcome).ok());
    return outcome;
  }

  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("replay_test." + std::to_string(::getpid()) + ".json");
  ToyModel model_;
  ToyHost host_{&model_};
  std::unique_ptr<ReplayEngine> engine_;
};

constexpr const char* kStatic = R"({
  "0": {"input_prompt": "a b", "generated_text": " c\n", "generated_tokens": [5, 6], "tpot": [0.5, 0.25],
        "latency": 1.5, "generated_top_n_logprobs": [{" c": -0.5, "x": -1.0}, {"\n": -0.25}],
        "logprobs": [-3.0, -0.5, NaN], "ttft": 0.125},
  "32": {"generated_text": "only text"},
  "64": {"generated_tokens": [1, 2, 3]}})";

TEST_F(Replay, GivesEverythingThatWasRecorded) {
  record(kStatic);
  ASSERT_TRUE(open().ok());
  const Outcome outcome = run({0, 32, 64});
  ASSERT_EQ(outcome.finished.size(), 3U);
  const EngineResult& full = outcome.finished.at(0);
  EXPECT_EQ(full.prompt, "a b");
  EXPECT_EQ(full.text, " c\n");
  EXPECT_THAT(full.tokens, ElementsAre(5, 6));
  EXPECT_THAT(full.prompt_logprobs, ElementsAre(-3.0));
  EXPECT_THAT(full.generated_logprobs, ElementsAre(-0.5, testing::IsNan()));
  EXPECT_THAT(full.generated_top_n.counts, ElementsAre(2, 1));
  EXPECT_EQ(full.generated_top_n.texts[1], "x");
  EXPECT_THAT(full.tpot, ElementsAre(0.5, 0.25));
  EXPECT_EQ(full.latency, 1.5);
  EXPECT_EQ(nlohmann::json::parse(full.extra), nlohmann::json({{"ttft", 0.125}}));
  EXPECT_EQ(outcome.finished.at(32).text, "only text");
  EXPECT_THAT(outcome.finished.at(32).tokens, IsEmpty());
  EXPECT_EQ(outcome.finished.at(64).text, std::nullopt);
  EXPECT_THAT(outcome.finished.at(64).tokens, ElementsAre(1, 2, 3));
}

TEST_F(Replay, ReadsBackIntoTheSameRecord) {
  record(kStatic);
  ASSERT_TRUE(open().ok());
  std::vector<EngineEvent> events;
  ASSERT_TRUE(submit(engine_.get(), 0, {}).ok());
  ASSERT_TRUE(engine_->step(&events).ok());
  EventPage page;
  page.assign(std::move(events));
  const Result<RequestRecord> again = record_of(*page.data()[0].result, "0");
  ASSERT_TRUE(again.ok()) << again.status().message();
  const Result<ResultSet> original = read_results(file_.string());
  ResultSet left;
  left.requests = {*again};
  ResultSet right;
  right.requests = {*original->find("0")};
  EXPECT_EQ(results_text(left), results_text(right));
}

TEST_F(Replay, FailsARequestThatWasNotRecordedAndAnswersTheOthers) {
  record(kStatic);
  ASSERT_TRUE(open().ok());
  const Outcome outcome = run({0, 7, 64});
  EXPECT_EQ(outcome.finished.size(), 2U);
  EXPECT_EQ(outcome.failed.at(7).code(), StatusCode::kNotFound);
  EXPECT_THAT(outcome.failed.at(7).message(), HasSubstr("no record of request 7 among 3"));
}

TEST_F(Replay, FindsRecordsByTheNamesOfTheHost) {
  record(R"({"intro": {"generated_text": "x"}, "2": {"generated_text": "y"}})");
  ASSERT_TRUE(open({{"ids", {"2", "intro"}}}).ok());
  const Outcome outcome = run({0, 1, 2});
  EXPECT_EQ(outcome.finished.at(0).text, "y");
  EXPECT_EQ(outcome.finished.at(1).text, "x");
  EXPECT_THAT(outcome.failed.at(2).message(), HasSubstr("names 2 records"));
}

TEST_F(Replay, CarriesRoutingWithItsPositions) {
  record(R"({"0": {"generated_tokens": [1], "routing_indices": [[[3, 4]], [[5, 6]]],
                   "routing_indices_token_indices": [4, 9]}})");
  ASSERT_TRUE(open().ok());
  const Outcome outcome = run({0});
  const EngineResult& result = outcome.finished.at(0);
  EXPECT_THAT(result.routing, ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(result.routing_tokens, 2U);
  EXPECT_EQ(result.moe_layers, 1U);
  EXPECT_EQ(result.moe_topk, 2U);
  EXPECT_EQ(nlohmann::json::parse(result.extra)["routing_indices_token_indices"], nlohmann::json({4, 9}));
}

TEST_F(Replay, JudgesNumbersOfLogprobs) {
  record(R"({"0": {"generated_tokens": [1, 2, 3], "logprobs": [-1.0, -2.0]},
             "1": {"generated_text": "t", "logprobs": [-1.0, -2.0]},
             "2": {"generated_tokens": [1], "generated_logprobs": [-1.0, -2.0]},
             "3": {"generated_tokens": [1], "prompt_logprobs": [-3.0], "generated_logprobs": [-1.0]}})");
  ASSERT_TRUE(open().ok());
  const Outcome outcome = run({0, 1, 2, 3});
  EXPECT_THAT(outcome.failed.at(0).message(), HasSubstr("record 0 holds 2 logprobs for 3 tokens"));
  EXPECT_THAT(outcome.finished.at(1).generated_logprobs, IsEmpty());
  EXPECT_THAT(host_.lines(), ElementsAre(HasSubstr("record 1 holds logprobs but no tokens")));
  EXPECT_THAT(outcome.failed.at(2).message(), HasSubstr("2 generated logprobs for 1 tokens"));
  EXPECT_THAT(outcome.finished.at(3).prompt_logprobs, ElementsAre(-3.0));
}

TEST_F(Replay, CancelsAndResets) {
  record(kStatic);
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(submit(engine_.get(), 0, {}).ok());
  ASSERT_TRUE(submit(engine_.get(), 32, {}).ok());
  EXPECT_EQ(submit(engine_.get(), 32, {}).code(), StatusCode::kInvalid);
  ASSERT_TRUE(engine_->cancel(0).ok());
  EXPECT_EQ(engine_->cancel(0).code(), StatusCode::kNotFound);
  Outcome outcome;
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_EQ(outcome.failed.at(0).code(), StatusCode::kCancelled);
  EXPECT_EQ(outcome.finished.count(32), 1U);
  ASSERT_TRUE(submit(engine_.get(), 64, {}).ok());
  ASSERT_TRUE(engine_->reset().ok());
  EXPECT_EQ(engine_->pending(), 0U);
  EXPECT_EQ(run({0}).finished.size(), 1U);
}

TEST_F(Replay, CannotForceTokens) {
  record(kStatic);
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(submit(engine_.get(), 0, {.forced = {3}}).ok());
  Outcome outcome;
  ASSERT_TRUE(drain(engine_.get(), &outcome).ok());
  EXPECT_EQ(outcome.failed.at(0).code(), StatusCode::kUnsupported);
}

TEST_F(Replay, RefusesToOpenWithoutAFileThatItCanRead) {
  EXPECT_EQ(open().code(), StatusCode::kNotFound);
  record("{\"0\": {\"generated_text\":");
  EXPECT_EQ(open().code(), StatusCode::kInvalid);
  EXPECT_THAT(open({{"recorded", ""}}).message(), HasSubstr("recorded is not set"));
  EXPECT_THAT(open({{"record", "x"}}).message(), HasSubstr("unknown member record (did you mean 'recorded'?);"));
}

}  // namespace
}  // namespace assay::engines
