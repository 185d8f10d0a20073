// assay self-test as a user runs it: with the claiming metric listed no faulty run passes, and no benign change alarms.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json self_test(std::vector<std::string> words) {
  words.insert(words.begin(), {"self-test", "--json"});
  const Output output = run_program("assay", words);
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  const json report = json::parse(output.out, nullptr, false);
  EXPECT_TRUE(report.is_object()) << output.out;
  return report;
}

void expect_no_escape(const json& report) {
  EXPECT_EQ(report["killed"], report["trials"]);
  EXPECT_EQ(report["alarms"], 0);
  for (const json& fault : report["faults"]) EXPECT_TRUE(fault["not_killed"].empty()) << fault.dump(1);
  EXPECT_GE(report["controls"].size(), 5U);
}

TEST(SelfTest, OneFaultOfEachFamilyIsNoticedAtTwoPlaces) {
  const json report = self_test({"--seeds", "2", "--faults",
                                 "prompt_token_changed,stale_kv,wrong_expert,dropped_token,lost_character,nan_logprob,"
                                 "extra_request,crash"});
  EXPECT_EQ(report["faults"].size(), 8U);
  EXPECT_EQ(report["trials"], 16);
  expect_no_escape(report);
}

TEST(SelfTest, RelationsNoticeWhatNoGoldenShows) {
  const json report = self_test({"--seeds", "2", "--faults", "stale_prefix,third_chunk,chunks_ignored,reload"});
  EXPECT_EQ(report["faults"].size(), 4U);
  EXPECT_EQ(report["trials"], 8);
  expect_no_escape(report);
  for (const json& fault : report["faults"]) EXPECT_EQ(fault["metric"].get<std::string>()[0], '@');
}

TEST(SelfTest, WhatCannotBeTriedIsSaidInOneLine) {
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--faults", "no_such"}, "--faults 'no_such': no fault has such a name"},
           {{"--seeds", "0"}, "--seeds 0: expected 1 .. 9999"},
           {{"--jobs", "0"}, "--jobs: expected 1 or more"},
           {{"--cases", "no/such/folder"}, "no/such/folder"},
           {{"--cases", "testcases/moe/moe_10m_licences_fp32_b4"}, "no case with characteristic golden values"}}) {
    std::vector<std::string> all = {"self-test"};
    all.insert(all.end(), words.begin(), words.end());
    const Output output = run_program("assay", all);
    EXPECT_EQ(output.code, 2) << message;
    EXPECT_THAT(output.err, HasSubstr(message));
    EXPECT_EQ(output.out, "");
  }
}

}  // namespace
}  // namespace assay::tests
