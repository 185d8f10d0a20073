#include "core/train/metric_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace assay::train {
namespace {

using testing::HasSubstr;

TEST(MetricFile, ComesBackAsItWasWritten) {
  MetricSet set;
  set.metrics.push_back({"lm loss", 1, 3, 1, {{1, 10.5, false}, {2, 1e-5, false}, {3, NAN, false}}});
  set.metrics.push_back({"mem-allocated-bytes", 2, 2, 1, {{2, 61232738304.0, false}}});
  const std::string text = metrics_text(set);
  EXPECT_EQ(
      text,
      "{\n    \"lm loss\": {\n        \"start_step\": 1,\n        \"end_step\": 3,\n        \"step_interval\": 1,\n"
      "        \"values\": {\n            \"1\": 10.5,\n            \"2\": 1e-05,\n            \"3\": \"nan\"\n        "
      "}\n    },\n"
      "    \"mem-allocated-bytes\": {\n        \"start_step\": 2,\n        \"end_step\": 2,\n        "
      "\"step_interval\": 1,\n"
      "        \"values\": {\n            \"2\": 61232738304.0\n        }\n    }\n}\n");
  const Result<MetricSet> read = read_metrics_text(text, "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(metrics_text(*read), text);
  EXPECT_TRUE(StepIndex(*read->find("lm loss")).find(3)->is_text);
}

TEST(MetricFile, ReadsWhatPythonReads) {
  const auto read = read_metrics_text(
      R"("{\"a\": {\"start_step\": 1, \"end_step\": 2.0, \"step_interval\": 1, \"values\": {\"1\": NaN, \"2\": -Infinity}}}")",
      "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(std::isnan(read->metrics[0].values[0].value));
  EXPECT_FALSE(read->metrics[0].values[0].is_text);
  EXPECT_TRUE(std::isinf(read->metrics[0].values[1].value));
}

TEST(MetricFile, SaysWhatIsWrong) {
  const auto reason = [](const char* text) { return read_metrics_text(text, "g.json").status().message(); };
  const auto metric = [&](const std::string& members) { return reason(("{\"lm loss\": {" + members + "}}").c_str()); };
  EXPECT_THAT(reason(""), HasSubstr("g.json: the file is empty"));
  EXPECT_THAT(reason("[1]"), HasSubstr("expected an object of metrics"));
  EXPECT_THAT(reason("{\"a\": "), HasSubstr("line 1, column"));
  EXPECT_THAT(reason("{\"a\": 1}"), HasSubstr("metric 'a' is no object"));
  EXPECT_THAT(metric("\"end_step\": 1"), HasSubstr("metric 'lm loss' has no start_step"));
  const std::string head = "\"start_step\": 1, \"end_step\": 2, \"step_interval\": 1, ";
  EXPECT_THAT(metric("\"start_step\": 1e999"), HasSubstr("number overflow parsing '1e999'"));
  EXPECT_THAT(metric("\"start_step\": 1e30"), HasSubstr("start_step is 1e+30, expected a whole number"));
  EXPECT_THAT(metric(head + "\"values\": [1, 2]"), HasSubstr("values is a list"));
  EXPECT_THAT(metric(head + "\"values\": {\"x\": 2}"), HasSubstr("step 'x' is no whole number"));
  EXPECT_THAT(metric(head + "\"values\": {\"1\": null}"), HasSubstr("step 1: null is no number"));
  EXPECT_EQ(read_metrics("/no/such.json").status().code(), StatusCode::kNotFound);
}

TEST(MetricFile, OfANameThatComesTwiceTheLastValueCountsInTheFirstPlace) {
  const auto read = read_metrics_text(
      R"({"a": 1, "b": {"start_step": 1, "end_step": 3, "step_interval": 1,
          "values": {"2": 1, "1": 2, "2": 3, "01": 4, "3": 5}, "start_step": 7},
          "a": {"start_step": 1, "end_step": 1, "step_interval": 1, "values": {}}})",
      "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->metrics.size(), 2U);
  EXPECT_EQ(read->metrics[0].name, "a");
  const Metric& b = read->metrics[1];
  EXPECT_EQ(b.start_step, 7);
  ASSERT_EQ(b.values.size(), 3U);
  EXPECT_EQ(b.values[0].step, 2);
  EXPECT_EQ(b.values[0].value, 3);
  EXPECT_EQ(b.values[1].value, 4);
  const StepIndex index(b);
  EXPECT_EQ(index.find(3)->value, 5);
  EXPECT_EQ(index.find(0), nullptr);
  EXPECT_EQ(index.find(4), nullptr);
}

// Of a training that logs every step; looking at each against all others took minutes.
// Reads `count` steps that stand in descending order, and finds each. The seconds of processor that it took: what else
// the machine does counts for nothing.
double read_and_find(int64_t count) {
  Metric metric{"lm loss", 1, count, 1, {}};
  for (int64_t step = count; step > 0; --step) metric.values.push_back({step, 0.5, false});
  MetricSet set;
  set.metrics.push_back(std::move(metric));
  const std::string text = metrics_text(set);
  const std::clock_t begin = std::clock();
  const auto read = read_metrics_text(text, "f");
  EXPECT_TRUE(read.ok()) << read.status().message();
  if (!read.ok()) return 0;
  EXPECT_EQ(read->metrics[0].values.size(), static_cast<size_t>(count));
  const StepIndex index(read->metrics[0]);
  int64_t found = 0;
  for (int64_t step = 1; step <= count; ++step) found += index.find(step) != nullptr ? 1 : 0;
  EXPECT_EQ(found, count);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double best_of_three(int64_t count) {
  return std::min({read_and_find(count), read_and_find(count), read_and_find(count)});
}

TEST(MetricFile, TenTimesTheStepsTakeTenTimesAsLongAndNotAHundred) {
  read_and_find(1000);  // warm
  const double some = best_of_three(20'000);
  EXPECT_LT(best_of_three(200'000), 40 * some);
}

TEST(MetricFile, WhatSaysTwoThingsIsAFlawOfItsMetric) {
  const auto flaw = [](const std::string& values, const std::string& around = "") {
    const std::string head = R"("start_step": 1, "end_step": 2, "step_interval": 1, )";
    const auto set =
        read_metrics_text("{" + around + R"("other": {)" + head + R"("values": {"1": 1, "2": 2}}, "lm loss": {)" +
                              head + R"("values": {)" + values + "}}}",
                          "g.json");
    EXPECT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ(set->find("other")->flaw, "");
    return set->find("lm loss")->flaw;
  };
  EXPECT_EQ(flaw(R"("1": 1.5, "2": "nan")"), "");
  EXPECT_EQ(flaw(R"("1": 1.5, "2": 5, "1": 1.5)"), "step 1 stands twice");
  EXPECT_EQ(flaw(R"("1": 1.5, "01": 1.5, "2": 5)"), "step 1 stands twice");
  EXPECT_EQ(flaw(R"("1": 1, "2": 2}, "values": {"1": 1, "2": 2)"), "its member values stands twice");
  EXPECT_EQ(flaw(R"("1": 1, "2": 2)", R"("lm loss": {"values": {}}, )"), "it stands twice");
  for (const char* word : {"9.5", "", "NaN", "inf", "-inf", "x"}) {
    EXPECT_THAT(flaw("\"1\": 1.5, \"2\": \"" + std::string(word) + "\""),
                HasSubstr("step 2 is the string \"" + std::string(word) + "\"; expected a number, or \"nan\""));
  }
  const auto text = read_metrics_text(
      R"("{\"a\": {\"start_step\": 1, \"end_step\": 1, \"step_interval\": 1, \"values\": {\"1\": 1, \"1\": 2}}}")",
      "g");
  EXPECT_EQ(text->metrics.at(0).flaw, "step 1 stands twice");
}

TEST(MetricFile, StepsThatAreNotThereAreAGapOfWhatIsReadWholly) {
  const char* text = R"({"a": {"start_step": 1, "end_step": 3, "step_interval": 1, "values": {"1": 1, "3": 2}}})";
  EXPECT_THAT(read_metrics_text(text, "g")->metrics.at(0).gap, HasSubstr("step 2 is missing"));
  EXPECT_EQ(read_metrics_text(text, "g", Schema::kLoose)->metrics.at(0).gap, "");
}

TEST(MetricFile, OneThatIsNestedTooDeepIsRefusedAndNotWrittenIntoAMessage) {
  constexpr size_t kDeep = 1'000'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  const std::string head = R"({"a": {"start_step": 1, "end_step": 1, "step_interval": 1, "values": {"1": )";
  for (const Schema schema : {Schema::kWhole, Schema::kLoose}) {
    for (const std::string& text : {deep, head + deep + "}}}", R"({"a": {"start_step": )" + deep + "}}",
                                    R"({"other": )" + deep + ", " + head.substr(1) + "1}}}", "\"" + deep + "\""}) {
      EXPECT_EQ(read_metrics_text(text, "g", schema).status().message(), "g: it is nested more than 256 deep");
    }
  }
}

TEST(MetricFile, WhatIsNoFileIsOneLine) {
  const Status folder = read_metrics(testing::TempDir()).status();
  EXPECT_EQ(folder.code(), StatusCode::kInvalid);
  EXPECT_THAT(folder.message(), HasSubstr("is a folder; expected a file"));
  const std::string pipe = testing::TempDir() + "metric_pipe_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(read_metrics(pipe).status().message(), HasSubstr("is a named pipe; expected a file"));
  ::unlink(pipe.c_str());
  const Status unreadable = read_metrics("/proc/self/mem").status();
  EXPECT_EQ(unreadable.code(), StatusCode::kInfra);
  EXPECT_THAT(unreadable.message(), HasSubstr("/proc/self/mem: cannot be read"));
}

TEST(Round5, IsPythons) {
  EXPECT_EQ(round5(0.000005), 1e-05);
  EXPECT_EQ(round5(0.5), 0.5);
  EXPECT_EQ(round5(2.000005), 2.00000);
  EXPECT_EQ(round5(1.0000150000000001), 1.00002);
  EXPECT_EQ(round5(0.001953125), 0.00195);  // exact ties go to even
  EXPECT_EQ(round5(0.005859375), 0.00586);
  EXPECT_EQ(round5(-1.5e300), -1.5e300);
  EXPECT_TRUE(std::isnan(round5(NAN)));
}

}  // namespace
}  // namespace assay::train
