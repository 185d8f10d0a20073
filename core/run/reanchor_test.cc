// Re-anchoring with an engine made for the test: it counts upwards, and prefers one wrong token where it is told to.
#include "core/run/reanchor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "assay/sdk.hpp"

namespace assay::run {
namespace {

using compare::RerunResult;
using testing::ElementsAre;
using testing::HasSubstr;

// Token ids are characters. After token t comes t + 1, but after 'c' comes 'x', by 0.25 nats; 'z' ends a text.
struct Answer {
  std::vector<int32_t> prompt, tokens, ranks;
  std::vector<double> prompt_logprobs, logprobs, logits;
  std::vector<assay_candidate> entries;
  std::vector<uint32_t> counts;
  assay_result result = sdk::sized<assay_result>();
};

struct Counter {
  std::deque<Answer> answers;
  std::vector<assay_event> events;
  size_t open = 0;

  void add(const assay_request& request) {
    Answer& a = answers.emplace_back();
    if (request.ids.size > 0) {
      a.prompt.assign(request.ids.data, request.ids.data + request.ids.size);
    } else {
      const std::string_view text = sdk::text(request.text);
      a.prompt.assign(text.begin(), text.end());
    }
    a.prompt_logprobs.assign(a.prompt.size() - 1, -2);
    int32_t last = a.prompt.back();
    for (int32_t i = 0; i < request.max_new_tokens; ++i) {
      const int32_t best = last == 'c' ? 'x' : last + 1;
      const int32_t second = last == 'c' ? 'd' : last + 2;
      const bool forced = static_cast<size_t>(i) < request.forced.size;
      const int32_t token = forced ? request.forced.data[i] : best;
      if (!forced && token == 'z') break;
      a.tokens.push_back(token);
      a.ranks.push_back(token == best ? 0 : 1);
      a.logprobs.push_back(token == best ? -0.5 : -0.75);
      a.logits.push_back(token == best ? 3 : 2.75);
      a.entries.push_back({best, 0, -0.5, {}});
      a.entries.push_back({second, 0, -0.75, {}});
      a.counts.push_back(2);
      last = token;
    }
    a.result.id = request.id;
    a.result.prompt_ids = sdk::view(std::span<const int32_t>(a.prompt));
    a.result.tokens = sdk::view(std::span<const int32_t>(a.tokens));
    a.result.prompt_logprobs = sdk::view(std::span<const double>(a.prompt_logprobs));
    a.result.generated_logprobs = sdk::view(std::span<const double>(a.logprobs));
    a.result.generated_logits = sdk::view(std::span<const double>(a.logits));
    a.result.generated_ranks = sdk::view(std::span<const int32_t>(a.ranks));
    a.result.generated_top_n = {a.entries.data(), a.counts.data(), a.counts.size()};
    ++open;
  }
};

const assay_engine_table kTable = {
    sizeof(assay_engine_table),
    0,
    [](const assay_engine_config*, void** engine, assay_error*) -> int32_t {
      *engine = new Counter;
      return ASSAY_OK;
    },
    [](void* engine, const assay_request* request, assay_error*) -> int32_t {
      static_cast<Counter*>(engine)->add(*request);
      return ASSAY_OK;
    },
    [](void*, uint64_t, assay_error*) -> int32_t { return ASSAY_OK; },
    [](void* engine, const assay_event** events, size_t* count, size_t* pending, assay_error*) -> int32_t {
      auto& counter = *static_cast<Counter*>(engine);
      counter.events.clear();
      for (const Answer& answer : counter.answers) {
        auto event = sdk::sized<assay_event>();
        event.kind = ASSAY_EVENT_FINISHED;
        event.id = answer.result.id;
        event.result = &answer.result;
        counter.events.push_back(event);
      }
      *events = counter.events.data();
      *count = counter.events.size();
      *pending = 0;
      return ASSAY_OK;
    },
    [](void*, assay_error*) -> int32_t { return ASSAY_OK; },
    [](void* engine) { delete static_cast<Counter*>(engine); },
    nullptr,
    nullptr};

constexpr uint64_t kCanAll = ASSAY_CAP_TOKENS | ASSAY_CAP_TOP_N | ASSAY_CAP_LOGPROBS | ASSAY_CAP_FORCED_TOKENS;

class Reanchor : public testing::Test {
 protected:
  Reanchor() {
    plugin_.name = "counter";
    plugin_.capabilities = kCanAll;
    plugin_.table = &kTable;
    input_.engine = &plugin_;
    order_.prompts = {"a", "m"};
    order_.max_new_tokens = 5;
    order_.top_k = 1;
    order_.engine_options = "{}";
  }

  Result<RerunResult> rerun(std::string_view golden, const std::vector<compare::PartedRequest>& parted) {
    Result<ResultSet> set = read_results_text(golden, "golden");
    EXPECT_TRUE(set.ok()) << set.status().message();
    golden_ = *std::move(set);
    EngineRerun again(input_, order_, 24, 0);
    return again.run({.golden = &golden_, .actual = &golden_, .parted = parted});
  }

  plugin::Plugin plugin_;
  EngineInput input_;
  CaseOrder order_;
  ResultSet golden_;
};

constexpr std::string_view kGolden = R"({"0": {"generated_tokens": [98, 99, 100, 101, 102]},
  "1": {"generated_tokens": [110, 111, 112, 113, 114]}})";  // b c d e f; n o p q r

std::vector<int32_t> preferred(const compare::RerunRequest& request) {
  std::vector<int32_t> ids;
  for (const compare::RerunPosition& position : request.positions) ids.push_back(position.top.at(0).id);
  return ids;
}

TEST_F(Reanchor, ForcedTokensShowWhatTheEnginePrefersAtEachPosition) {
  const Result<RerunResult> result = rerun(kGolden, {{"0", ""}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->method, "forced");
  const compare::RerunRequest& request = *result->find("0");
  EXPECT_THAT(preferred(request), ElementsAre('b', 'c', 'x', 'e', 'f'));
  EXPECT_EQ(request.positions[2].golden_logprob, -0.75);
  EXPECT_EQ(request.positions[2].golden_logit, 2.75);
  EXPECT_EQ(request.positions[2].golden_rank, 1);
  ASSERT_TRUE(request.record.has_value());
  EXPECT_THAT(*request.record->tokens, ElementsAre('b', 'c', 'd', 'e', 'f'));
  EXPECT_FALSE(request.record->top_n.has_value()) << "the judged run asked for none";
  EXPECT_EQ(request.further, 0U);
}

TEST_F(Reanchor, TheJudgedRunsOwnTokensAreFedBackWhereTokensCanBeForced) {
  golden_ = *read_results_text(kGolden, "golden");
  const ResultSet actual = *read_results_text(R"({"0": {"generated_tokens": [98, 99, 120, 121]}, "1": {}})", "actual");
  EngineRerun again(input_, order_, 24, 0);
  const Result<RerunResult> result = again.run_own({.golden = &golden_, .actual = &actual, .parted = {{"0", ""}}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  const compare::RerunRequest& request = *result->find("0");
  EXPECT_THAT(preferred(request), ElementsAre('b', 'c', 'x', 'y'));
  EXPECT_EQ(request.further, 0U) << "after y comes z, the end";
  plugin_.capabilities = kCanAll & ~uint64_t{ASSAY_CAP_FORCED_TOKENS};
  EXPECT_EQ(again.run_own({.golden = &golden_, .actual = &actual, .parted = {{"0", ""}}}).status().code(),
            StatusCode::kUnsupported);
}

TEST_F(Reanchor, WithoutForcedTokensNewPromptsSayTheSame) {
  const Result<RerunResult> forced = rerun(kGolden, {{"0", ""}});
  plugin_.capabilities = kCanAll & ~uint64_t{ASSAY_CAP_FORCED_TOKENS};
  const Result<RerunResult> continued = rerun(kGolden, {{"0", ""}});
  ASSERT_TRUE(continued.ok()) << continued.status().message();
  EXPECT_EQ(continued->method, "continued");
  const compare::RerunRequest& a = *forced->find("0");
  const compare::RerunRequest& b = *continued->find("0");
  EXPECT_EQ(preferred(a), preferred(b));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(a.positions[i].golden_logprob, b.positions[i].golden_logprob) << i;
    EXPECT_EQ(a.positions[i].golden_logit, b.positions[i].golden_logit) << i;
    EXPECT_EQ(a.positions[i].golden_rank, b.positions[i].golden_rank) << i;
  }
  ASSERT_TRUE(b.record.has_value());
  EXPECT_EQ(a.record->logprobs, b.record->logprobs);
}

TEST_F(Reanchor, AGoldenThatEndsEarlierThanTheEngineIsTold) {
  constexpr std::string_view kShort = R"({"0": {"generated_tokens": [98, 99, 100]}, "1": {"generated_tokens": [110]}})";
  EXPECT_EQ(rerun(kShort, {{"0", ""}})->find("0")->further, 2U);
  plugin_.capabilities = kCanAll & ~uint64_t{ASSAY_CAP_FORCED_TOKENS};
  EXPECT_GT(rerun(kShort, {{"0", ""}})->find("0")->further, 0U);
}

TEST_F(Reanchor, RequestsByIdsAreRunAgainByTheirIds) {
  const std::vector<int32_t> by_text = preferred(*rerun(kGolden, {{"0", ""}})->find("0"));
  order_.prompts = {"", ""};
  const std::vector<RequestChange> changes = {{.ids = {'a'}}, {.ids = {'m'}, .max_new_tokens = 5}};
  for (const uint64_t capabilities : {kCanAll, kCanAll & ~uint64_t{ASSAY_CAP_FORCED_TOKENS}}) {
    plugin_.capabilities = capabilities;
    EngineRerun again(input_, order_, 24, 0, changes);
    const Result<RerunResult> result = again.run({.golden = &golden_, .actual = &golden_, .parted = {{"0", ""}}});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(preferred(*result->find("0")), by_text) << result->method;
  }
}

TEST_F(Reanchor, TextsWithoutTokensAreTokenizedByTheEngine) {
  const Result<RerunResult> result = rerun(R"({"0": {"generated_text": "bcdef"}})", {{"0", "bcdef"}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(result->find("0")->golden_tokens, ElementsAre('b', 'c', 'd', 'e', 'f'));
  EXPECT_THAT(preferred(*result->find("0")), ElementsAre('b', 'c', 'x', 'e', 'f'));
}

TEST_F(Reanchor, SaysWhyAnEngineCannotBeRunAgain) {
  EXPECT_EQ(EngineRerun::impossible({.engine = &plugin_}, order_), "");
  order_.top_k = 0;
  EXPECT_THAT(EngineRerun::impossible({.engine = &plugin_}, order_), HasSubstr("greedy decoding alone"));
  order_.top_k = 1;
  plugin_.capabilities = kCanAll & ~uint64_t{ASSAY_CAP_TOP_N};
  EXPECT_THAT(EngineRerun::impossible({.engine = &plugin_}, order_), HasSubstr("cannot supply top-n logprobs"));
  plugin_.capabilities = kCanAll | ASSAY_CAP_RECORDED;
  EXPECT_THAT(EngineRerun::impossible({.engine = &plugin_}, order_), HasSubstr("no engine to run again"));
}

}  // namespace
}  // namespace assay::run
