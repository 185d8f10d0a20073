// The kit on plugins with one fault each: the fault is found, by the check that looks for it. The kit on all plugins of
// this build stands in plugins/conformance.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/conformance/findings.h"
#include "core/conformance/kit.h"

namespace assay::conformance {
namespace {

using testing::HasSubstr;

std::string bad_file(const std::string& name) { return ASSAY_BINARY_DIR "/tests/bad_plugins/" + name + ".so"; }

struct Fault {
  const char* plugin;
  const char* check;  // that has to fail
  const char* says;   // part of its message
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.plugin; }

class Kit : public testing::TestWithParam<Fault> {};

TEST_P(Kit, FindsTheFault) {
  KitOptions options;
  options.limit = std::chrono::milliseconds(std::string(GetParam().plugin) == "engine_bad_hangs" ? 700 : 60000);
  const auto report = test_plugin(bad_file(GetParam().plugin), options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->passed());
  std::string failures;
  bool found = false;
  for (const CheckResult& one : report->results) {
    if (one.outcome != Outcome::kFailed) continue;
    failures += one.check + ": " + one.message + "\n";
    found = found || (one.check == GetParam().check && one.message.find(GetParam().says) != std::string::npos);
  }
  EXPECT_TRUE(found) << "expected " << GetParam().check << ": ..." << GetParam().says << "..., found\n" << failures;
}

INSTANTIATE_TEST_SUITE_P(
    Engines, Kit,
    testing::Values(Fault{"engine_bad_keeps_the_request", "request", "used after the call that it was lent for"},
                    Fault{"engine_bad_writes_into_the_request", "request", "inputs belong to the caller"},
                    Fault{"engine_bad_frees_results_early", "request", "changed before the next call"},
                    Fault{"engine_bad_shares_results", "capabilities", "its result is that of"},
                    Fault{"engine_bad_message_without_end", "options", "without a NUL-terminated message"},
                    Fault{"engine_bad_other_code_in_error", "options", "wrote code 5 into the error"},
                    Fault{"engine_bad_message_of_two_lines", "options", "is not one line"},
                    Fault{"engine_bad_touches_outputs", "options", "outputs stay untouched"},
                    Fault{"engine_bad_takes_any_option", "options", "expected INVALID"},
                    Fault{"engine_bad_claims_logprobs", "capabilities", "logprobs are claimed and wanted"},
                    Fault{"engine_bad_claims_forced", "capabilities", "the generated tokens are others"},
                    Fault{"engine_bad_ignores_forced", "capabilities", "served as if it had none"},
                    Fault{"engine_bad_claims_seed", "seed", "seven seeds draw the same"},
                    Fault{"engine_bad_refuses_logprobs", "capabilities", "a request that wants them fails"},
                    Fault{"engine_bad_fails_beside_others", "capabilities", "number 2 fails: one at a time"},
                    Fault{"engine_bad_claims_l1", "L1", "a request asked twice differs"},
                    Fault{"engine_bad_claims_l2", "L2", "a request differs beside others"},
                    Fault{"engine_bad_leaks", "lifecycle", "close frees what open and submit allocated"},
                    Fault{"engine_bad_leaks_files", "lifecycle", "more open files"},
                    Fault{"engine_bad_crashes_on_empty", "bad requests", "SIGABRT"},
                    Fault{"engine_bad_hangs", "request", "did not come to an end"},
                    Fault{"engine_bad_ends_twice", "request", "after its end"},
                    Fault{"engine_bad_miscounts", "request", "are pending, expected"},
                    Fault{"engine_bad_forgets_a_request", "capabilities", "requests are pending, expected"},
                    Fault{"engine_bad_keeps_state_at_reset", "cancel and reset", "before and after reset differs"},
                    Fault{"engine_bad_shares_state", "ownership", "changes the results of the first"},
                    Fault{"engine_bad_writes_beyond_size", "info", "read beyond its `size`"},
                    Fault{"engine_bad_refuses_longer_structs", "sizes", "a newer host"},
                    Fault{"engine_bad_serves_any_major", "versions", "expected null"},
                    Fault{"engine_bad_breaks_its_schema", "options schema", "not a JSON object"},
                    Fault{"engine_bad_logs_two_lines", "request", "log: not one line"},
                    Fault{"engine_bad_writes_no_utf8", "request", "`text` is not UTF-8"},
                    Fault{"engine_bad_says_no_utf8", "options", "is not one line of UTF-8"},
                    Fault{"engine_bad_throws", "request", "an exception crossed the border"}),
    [](const auto& one) { return std::string(one.param.plugin); });

INSTANTIATE_TEST_SUITE_P(
    Comparators, Kit,
    testing::Values(Fault{"comparator_bad_says_equal", "differing records", "differs in everything"},
                    Fault{"comparator_bad_passes_what_is_missing", "missing data", "nothing missing ever passes"},
                    Fault{"comparator_bad_looks_at_the_first_pair", "differing records", "one request of six"},
                    Fault{"comparator_bad_reads_beyond_size", "sizes", "beyond its `size`"},
                    Fault{"comparator_bad_not_thread_safe", "threads", "bad_not_thread_safe"},
                    Fault{"comparator_bad_refuses_older_structs", "sizes", "shorter structs"},
                    Fault{"comparator_bad_passes_what_is_cut", "broken records", "texts: a result cut to 0 values"},
                    Fault{"comparator_bad_refuses_options", "options", "every member that assay_judgement documents"}),
    [](const auto& one) { return std::string(one.param.plugin); });

INSTANTIATE_TEST_SUITE_P(Launchers, Kit,
                         testing::Values(Fault{"launcher_bad_loses_exit_codes", "tasks", "a task that exits with 3"},
                                         Fault{"launcher_bad_leaves_children", "cancel",
                                               "a child of the task still runs"},
                                         Fault{"launcher_bad_close_ends_nothing", "close", "the task still runs"},
                                         Fault{"launcher_bad_no_log", "tasks", "not in its log"},
                                         Fault{"launcher_bad_ignores_most_at_once", "limits", "more than two tasks"},
                                         Fault{"launcher_bad_poll_of_anything", "bad jobs", "expected NOT_FOUND"}),
                         [](const auto& one) { return std::string(one.param.plugin); });

TEST(Texts, AreUtf8AsUnicodeHasIt) {
  for (const char* good : {"", "a b", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good) && one_line(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x80\x80\xAF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xC3", "\xE2\x82"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
    EXPECT_FALSE(one_line(bad)) << bad;
  }
  EXPECT_TRUE(is_utf8("a\nb"));
  EXPECT_FALSE(one_line("a\nb"));
}

TEST(KitReport, PluginsInOrderPassWithNumbers) {
  for (const char* name : {"engine_bad_good", "comparator_bad_good"}) {
    const auto report = test_plugin(bad_file(name), {});
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->passed()) << to_text(*report);
    for (const CheckResult& one : report->results) EXPECT_EQ(one.outcome == Outcome::kPassed, one.expectations > 0);
    const auto json = nlohmann::json::parse(to_json(*report));
    EXPECT_EQ(json["passed"], true);
    EXPECT_EQ(json["checks"].size(), report->results.size());
  }
}

TEST(KitReport, WhatCannotBeCheckedIsNoPass) {
  const auto report = test_plugin(bad_file("engine_bad_good"), {R"({"x": 1})", {}, std::chrono::seconds(60)});
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(to_text(*report), HasSubstr("not checked  request: open was refused with INVALID: no options are known"));
  for (const CheckResult& one : report->results) {
    if (one.check != "request" && one.check != "L1") continue;
    EXPECT_EQ(one.outcome, Outcome::kNotChecked) << one.check;
  }
}

TEST(KitReport, FilesThatDoNotLoadAreAFailure) {
  const auto report = test_plugin("/nonexistent/engine_none.so", {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->passed());
  EXPECT_THAT(to_text(*report), HasSubstr("no such file"));
  EXPECT_EQ(test_plugin(bad_file("engine_bad_good"), {"[]", {}, std::chrono::seconds(60)}).status().code(),
            StatusCode::kInvalid);
}

}  // namespace
}  // namespace assay::conformance
