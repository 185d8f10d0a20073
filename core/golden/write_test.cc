#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "assay/golden.h"

namespace assay {
namespace {

using testing::ElementsAre;

ResultSet sample() {
  RequestRecord request;
  request.id = "0";
  request.prompt = "say \"hi\"\n\u201c\U0001F600";
  request.text = "a\\b\x01";
  request.tokens = {5, -1};
  request.logprobs = {-0.1, std::nan(""), std::numeric_limits<double>::infinity()};
  request.top_n = TopLists{{{" x", -0.5}, {"y", -1e-05}, {"z", -2}}, {2, 1}};
  request.tpot = {0.25, 1.0};
  request.latency = 3;
  request.routing = Routing{{1, 2, 3, 4}, 2, 1, 2, {4, 6}};
  request.extra = {{"step_count", "30"}};
  ResultSet set;
  set.requests = {request};
  set.quantities = {{"throughput", {1.0, 2.5}, false}, {"mem-max-allocated-bytes", {123456789012.0}, true}};
  return set;
}

TEST(WriteResults, SpellsAndOrdersAsTheStaticScript) {
  EXPECT_EQ(results_text(sample()),
            R"({"0": {"input_prompt": "say \"hi\"\n\u201c\ud83d\ude00", "generated_text": "a\\b\u0001", )"
            R"("generated_tokens": [5, -1], "tpot": [0.25, 1.0], "latency": 3.0, "generated_top_n_logprobs": )"
            R"([{" x": -0.5, "y": -1e-05}, {"z": -2.0}], "logprobs": [-0.1, NaN, Infinity], )"
            R"("routing_indices": [[[1, 2]], [[3, 4]]], "routing_indices_token_indices": [4, 6], "step_count": 30}, )"
            R"("throughput": [1.0, 2.5], "mem-max-allocated-bytes": 123456789012})");
}

TEST(WriteResults, WhatWasWrittenReadsBackTheSame) {
  ResultSet set = sample();
  const std::vector<double> awkward = {0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308, 1e16, 123456789.125f, -1e-7};
  set.requests[0].logprobs = awkward;
  const Result<ResultSet> back = read_results_text(results_text(set), "x");
  ASSERT_TRUE(back.ok()) << back.status().message();
  const RequestRecord& request = back->requests[0];
  for (size_t i = 0; i < awkward.size(); ++i) {
    EXPECT_EQ((*request.logprobs)[i], awkward[i]);
    EXPECT_EQ(std::signbit((*request.logprobs)[i]), std::signbit(awkward[i]));
  }
  EXPECT_EQ(request.prompt, set.requests[0].prompt);
  EXPECT_EQ(request.text, set.requests[0].text);
  EXPECT_EQ(request.routing->experts, set.requests[0].routing->experts);
  EXPECT_EQ(results_text(*back), results_text(set));
}

TEST(WriteResults, IllFormedTextBecomesTheReplacementCharacter) {
  ResultSet set;
  set.requests.emplace_back();
  set.requests[0].id = "0";
  set.requests[0].text = "a\xff\xe2\x80z";
  EXPECT_EQ(results_text(set), R"({"0": {"generated_text": "a\ufffd\ufffd\ufffdz"}})");
}

TEST(WriteResults, LeavesNoTemporaryFileAndReplacesTheOldOne) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("write_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string path = folder / "actual.json";
  ASSERT_TRUE(write_results(path, ResultSet()).ok());
  ASSERT_TRUE(write_results(path, sample()).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  const Result<ResultSet> back = read_results(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_THAT(*back->requests[0].tokens, ElementsAre(5, -1));
  fs::remove_all(folder);
  const Status status = write_results(path, sample());
  EXPECT_EQ(status.code(), StatusCode::kInfra);
  EXPECT_THAT(status.message(), testing::HasSubstr(path));
}

}  // namespace
}  // namespace assay
