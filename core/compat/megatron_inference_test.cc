#include "core/compat/megatron_inference.h"

#include <gtest/gtest.h>

namespace assay::compat {
namespace {

Metrics list(std::vector<std::string> names) { return {.form = Metrics::Form::kList, .names = std::move(names)}; }

// "passed", or the class of the exception; of assertions all there is to read.
std::string verdict(std::string_view golden, std::string_view actual, const Metrics& metrics) {
  const CompatVerdict judged = judge_inference(golden, actual, metrics);
  if (judged.outcome != CompatVerdict::kFailed) return to_string(judged.outcome);
  return judged.message.starts_with("AssertionError: ") ? judged.message.substr(16)
                                                        : judged.message.substr(0, judged.message.find(':'));
}

struct Row {
  const char* metric;
  const char* golden;
  const char* actual;
  const char* expected;
};

class Comparator : public ::testing::TestWithParam<Row> {};

TEST_P(Comparator, JudgesAsTheirs) {
  const Row& row = GetParam();
  EXPECT_EQ(verdict(row.golden, row.actual, list({row.metric})), row.expected) << row.metric << "\n"
                                                                               << row.golden << "\n"
                                                                               << row.actual;
}

constexpr const char* kText = "generated_text";
constexpr const char* kTokens = "generated_tokens";
constexpr const char* kLogprobs = "logprobs";
constexpr const char* kRouting = "routing_indices";
constexpr const char* kThroughput = "throughput";
constexpr const char* kMemory = "mem-max-allocated-bytes";

INSTANTIATE_TEST_SUITE_P(
    Text, Comparator,
    ::testing::Values(
        Row{kText, R"({"0":{"generated_text":"Hello"}})", R"({"0":{"generated_text":"H"}})", "passed"},
        Row{kText, R"({"0":{"generated_text":"H"}})", R"({"0":{"generated_text":"Hello"}})", "passed"},
        Row{kText, R"({"0":{"generated_text":"Hello"}})", R"({"0":{"generated_text":""}})",
            "request 0: generated_text is empty"},
        Row{kText, R"({"0":{"generated_text":"a\ud83d\ude00b"}})", R"({"0":{"generated_text":"a😀"}})", "passed"},
        Row{kText, R"({"0":{"generated_text":"a\u00e9x"}})", R"({"0":{"generated_text":"aéy"}})",
            "request 0: generated_text differs within its first 3 characters"},
        Row{kText, R"({"0":{"generated_text":[1,2]}})", R"({"0":{"generated_text":[1]}})", "passed"},
        Row{kText, R"({"0":{"generated_text":5}})", R"({"0":{"generated_text":5}})", "TypeError"},
        Row{kText, R"("{\"0\":{\"generated_text\":\"x\"}}")", R"({"0":{"generated_text":"x"}})", "passed"},
        Row{kText, R"("\"x\"")", R"({"0":{"generated_text":"x"}})", "AttributeError"}));

INSTANTIATE_TEST_SUITE_P(
    Ids, Comparator,
    ::testing::Values(Row{kTokens, R"({})", R"({})", "no test was performed: the golden is empty"},
                      Row{kTokens, R"({"throughput":[1]})", R"({})", "passed"},
                      Row{kTokens, R"({"0":{"generated_tokens":[1]}})", R"({})", "KeyError"},
                      Row{kTokens, R"({"0":{"generated_tokens":[1]}})", R"({"0":{"generated_tokens":[1]},"1":{}})",
                          "the results have request 1, the golden has not"},
                      Row{kTokens, R"({"id":0,"generated_tokens":[1]})", R"({"id":0,"generated_tokens":[1]})",
                          "TypeError"},
                      Row{kTokens, R"([1])", R"({})", "AttributeError"},
                      Row{kTokens, R"({"0":{"x":1}})", R"({"0":{"x":1}})",
                          "request 0: no test was performed: METRICS and the golden have no metric in common"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, Comparator,
    ::testing::Values(
        Row{kTokens, R"({"0":{"generated_tokens":[1,2]}})", R"({"0":{"generated_tokens":[1.0,2]}})", "passed"},
        Row{kTokens, R"({"0":{"generated_tokens":[NaN]}})", R"({"0":{"generated_tokens":[NaN]}})", "passed"},
        Row{kTokens, R"({"0":{"generated_tokens":null}})", R"({"0":{"generated_tokens":null}})", "passed"},
        Row{kTokens, R"({"0":{"generated_tokens":[1,2]}})", R"({"0":{"generated_tokens":[1]}})",
            "request 0: generated_tokens differ"},
        Row{kTokens, R"({"0":{"generated_tokens":[1]}})", R"({"0":{"logprobs":[1]}})", "KeyError"},
        Row{kLogprobs, R"({"0":{"logprobs":[-1.5]}})", R"({"0":{"logprobs":[-1.501]}})", "passed"},
        Row{kLogprobs, R"({"0":{"logprobs":[-1.5]}})", R"({"0":{"logprobs":[-1.5011]}})",
            "request 0: logprobs differ at index 0"},
        Row{kLogprobs, R"({"0":{"logprobs":[NaN]}})", R"({"0":{"logprobs":[NaN]}})",
            "request 0: logprobs differ at index 0"},
        Row{kLogprobs, R"({"0":{"logprobs":[-Infinity]}})", R"({"0":{"logprobs":[-Infinity]}})", "passed"},
        Row{kLogprobs, R"({"0":{"logprobs":[null]}})", R"({"0":{"logprobs":[null]}})", "TypeError"},
        Row{kLogprobs, R"({"0":{"logprobs":""}})", R"({"0":{"logprobs":[]}})", "passed"},
        Row{kLogprobs, R"({"0":{"logprobs":[1,2]}})", R"({"0":{"logprobs":[1]}})",
            "request 0: logprobs: 2 of the golden, 1 of the results"}));

INSTANTIATE_TEST_SUITE_P(
    Routing, Comparator,
    ::testing::Values(Row{kRouting, R"({"0":{"routing_indices":[[[2,1]]],"routing_indices_token_indices":[1]}})",
                          R"({"0":{"routing_indices":[[[9,9]],[[1,2]]]}})", "passed"},
                      Row{kRouting, R"({"0":{"routing_indices":[[[2,1]]],"routing_indices_token_indices":[-1]}})",
                          R"({"0":{"routing_indices":[[[9,9]],[[1,3]]]}})", "request 0: routing_indices differ"},
                      Row{kRouting, R"({"0":{"routing_indices":[[1]],"routing_indices_token_indices":[true,false]}})",
                          R"({"0":{"routing_indices":[[1],[2]]}})", "passed"},
                      Row{kRouting, R"({"0":{"routing_indices":[[1]],"routing_indices_token_indices":[2]}})",
                          R"({"0":{"routing_indices":[[1],[2]]}})", "IndexError"},
                      Row{kRouting, R"({"0":{"routing_indices":[[1]]}})", R"({"0":{"routing_indices":[[1]]}})",
                          "request 0: the golden has no routing_indices_token_indices"},
                      Row{kRouting, R"({"0":{"routing_indices":[[1]],"routing_indices_token_indices":[0]}})",
                          R"({"0":{"routing_indices":[[1],[2,3]]}})", "ValueError"},
                      Row{kRouting, R"({"0":{"routing_indices":1,"routing_indices_token_indices":0}})",
                          R"({"0":{"routing_indices":[1]}})", "AxisError"}));

INSTANTIATE_TEST_SUITE_P(
    Quantities, Comparator,
    ::testing::Values(
        Row{kThroughput, R"({"throughput":[9,100,110]})", R"({"throughput":[1,94.5,94.5]})", "passed"},
        Row{kThroughput, R"({"throughput":[9,100]})", R"({"throughput":[1,89]})", "throughput below 0.9 of the golden"},
        Row{kThroughput, R"({"throughput":[9,100]})", R"({"throughput":[1,120]})",
            "throughput 1.2 of the golden or more"},
        Row{kThroughput, R"({"throughput":[9]})", R"({"throughput":[9]})", "StatisticsError"},
        Row{kThroughput, R"({"throughput":9})", R"({"throughput":9})", "TypeError"},
        Row{kThroughput, R"({"throughput":[9,1]})", R"({})", "KeyError"},
        Row{kThroughput, R"({"throughput":[9,1],"0":{"generated_tokens":[1]}})",
            R"({"throughput":[9,1],"0":{"generated_tokens":[1]}})",
            "request 0: no test was performed: METRICS and the golden have no metric in common"},
        Row{kMemory, R"({"mem-max-allocated-bytes":100})", R"({"mem-max-allocated-bytes":[1,105,"105"]})", "passed"},
        Row{kMemory, R"({"mem-max-allocated-bytes":100})", R"({"mem-max-allocated-bytes":106})",
            "mem-max-allocated-bytes above 1.05 of the golden"},
        Row{kMemory, R"({"mem-max-allocated-bytes":100})", R"({"mem-max-allocated-bytes":NaN})", "passed"},
        Row{kMemory, R"({"mem-max-allocated-bytes":0})", R"({"mem-max-allocated-bytes":0})",
            "mem-max-allocated-bytes of the golden is not above 0"},
        Row{kMemory, R"({"mem-max-allocated-bytes":1})", R"({})", "the results have no mem-max-allocated-bytes"},
        Row{"lifetime_prefill_token_count", R"({"throughput":1})", R"({})", "TypeError"}));

TEST(ComparatorMetrics, FormsOfMetricsCount) {
  const char* golden = R"({"0":{"logprobs":[1]}})";
  const char* other = R"({"0":{"logprobs":[2]}})";
  EXPECT_EQ(verdict(golden, other, {}), "KeyError");
  EXPECT_EQ(verdict("{", "{", {.form = Metrics::Form::kFalsy}), "passed");
  EXPECT_EQ(verdict("\xff", "{", {.form = Metrics::Form::kFalsy}), "UnicodeDecodeError");
  EXPECT_EQ(verdict(golden, golden, {.form = Metrics::Form::kText, .names = {}, .text = "my_logprobs"}), "passed");
  EXPECT_EQ(verdict(golden, golden, {.form = Metrics::Form::kScalar}), "TypeError");
  EXPECT_EQ(
      verdict(golden, golden, {.form = Metrics::Form::kMapping, .names = {"logprobs", "lifetime_prefill_token_count"}}),
      "passed");
  EXPECT_EQ(verdict(golden, golden,
                    {.form = Metrics::Form::kText, .names = {}, .text = "lifetime_prefill_token_count logprobs"}),
            "AttributeError");
}

TEST(ComparatorMetrics, LightweightModeComparesNothing) {
  EXPECT_EQ(judge_inference("", "", {}, true).outcome, CompatVerdict::kSkipped);
}

TEST(ComparatorMetrics, AMetricThatTheGoldenLacksIsPassedOver) {
  EXPECT_EQ(verdict(R"({"0":{"logprobs":[1]}})", R"({"0":{"logprobs":[1],"generated_tokens":[1]}})",
                    list({"logprobs", "generated_tokens"})),
            "passed");
}

}  // namespace
}  // namespace assay::compat
