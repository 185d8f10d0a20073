#include "core/run/result_form.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace assay::run {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::ElementsAre;

ResultSet one(const std::vector<std::pair<std::string, std::string>>& extra) {
  ResultSet set;
  RequestRecord& record = set.requests.emplace_back();
  record.id = "0";
  record.prompt = "p";
  record.text = "t";
  record.tokens = {7, 2};
  record.logprobs = {-1, -2, -0.5, -0.25};
  record.top_n = TopLists{{{"a", -0.5}, {"b", -0.25}}, {1, 1}};
  record.prompt_top_n = TopLists{{{"a", -1}, {"b", -2}}, {1, 1}};
  record.latency = 1;
  record.extra = extra;
  return set;
}

// megatron.md 1.1, key set D.
TEST(ResultForm, ADynamicResultHasTheKeysOfTheDynamicScript) {
  ResultSet set =
      one({{"ttft", "0.5"}, {"engine_counters", "{}"}, {"cuda_graph_request_count_map", "{}"}, {"step_count", "3"}});
  set_form(&set);
  EXPECT_EQ(set.form, GoldenForm::kDynamic);
  const ordered_json request = ordered_json::parse(results_text(set))["0"];
  std::vector<std::string> keys;
  for (const auto& item : request.items()) keys.push_back(item.key());
  EXPECT_THAT(keys, ElementsAre("input_prompt", "generated_text", "generated_tokens", "latency", "ttft",
                                "cuda_graph_request_count_map", "step_count", "top_n_logprobs", "prompt_top_n_logprobs",
                                "prompt_logprobs", "generated_logprobs", "logprobs", "engine_counters"));
  EXPECT_EQ(request["prompt_logprobs"], ordered_json({-1.0, -2.0}));
  EXPECT_EQ(request["generated_logprobs"], ordered_json({-0.5, -0.25}));
  const Result<ResultSet> back = read_results_text(results_text(set), "back");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->form, GoldenForm::kDynamic);
  EXPECT_EQ(back->requests[0].top_n->entries.size(), 2U);
}

TEST(ResultForm, ADynamicResultSaysNullWhereNothingWasAskedAndOneStepCountForAll) {
  ResultSet set = one({{"cuda_graph_request_count_map", "{}"}, {"step_count", "3"}});
  set.requests[0].top_n.reset();
  set.requests[0].prompt_top_n.reset();
  set.requests.push_back(set.requests[0]);
  set.requests[1].id = "1";
  set.requests[1].extra[1].second = "12";
  set_form(&set);
  const json both = json::parse(results_text(set));
  EXPECT_TRUE(both["0"]["top_n_logprobs"].is_null());
  EXPECT_TRUE(both["1"]["prompt_top_n_logprobs"].is_null());
  EXPECT_EQ(both["0"]["step_count"], 12);
  const Result<ResultSet> back = read_results_text(results_text(set), "back");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->form, GoldenForm::kDynamic);
}

TEST(ResultForm, KeepsEveryNthRequestAndTheLastOne) {
  const auto kept = [](size_t requests, size_t every) {
    ResultSet set;
    for (size_t i = 0; i < requests; ++i) set.requests.emplace_back().id = std::to_string(i);
    keep_every(every, &set);
    EXPECT_EQ(set.requests.size(), kept_of(requests, every)) << requests << ", " << every;
    std::string ids;
    for (const RequestRecord& record : set.requests) ids += record.id + " ";
    return ids;
  };
  EXPECT_EQ(kept(5, 1), "0 1 2 3 4 ");
  EXPECT_EQ(kept(5, 2), "0 2 4 ");
  EXPECT_EQ(kept(6, 2), "0 2 4 5 ");
  EXPECT_EQ(kept(6, 100), "0 5 ");
  EXPECT_EQ(kept(1, 3), "0 ");
  EXPECT_EQ(kept(0, 3), "");
}

TEST(ResultForm, AnyOtherResultHasThoseOfTheStaticOne) {
  ResultSet set = one({{"engine_counters", "{}"}});
  set_form(&set);
  EXPECT_EQ(set.form, GoldenForm::kStatic);
  const json request = json::parse(results_text(set))["0"];
  EXPECT_TRUE(request.contains("generated_top_n_logprobs"));
  EXPECT_FALSE(request.contains("generated_logprobs"));
}

}  // namespace
}  // namespace assay::run
