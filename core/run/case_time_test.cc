#include "core/run/case_time.h"

#include <gmock/gmock.h>

#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using nlohmann::json;

constexpr std::chrono::steady_clock::time_point kCaseBegins{std::chrono::seconds(3)};

TEST(CaseTimeOption, GetsTheMomentAtWhichTheCaseBegins) {
  const std::string planned = json{{"url", "u"}, {"case_time", json::parse(case_time(120).dump())}}.dump();
  EXPECT_EQ(json::parse(with_case_begin(planned, kCaseBegins)),
            (json{{"url", "u"}, {"case_time", {{"seconds", 120.0}, {"began_ns", 3'000'000'000}}}}));
}

TEST(CaseTimeOption, OptionsWithoutItStayAsTheyAre) {
  for (const char* options : {"", "{}", R"({"url":  "u"})", R"({"case_time": 3})", "[]", "no JSON"}) {
    EXPECT_EQ(with_case_begin(options, kCaseBegins), options);
  }
}

class TimedRun : public Run {};

TEST_F(TimedRun, AnEngineThatKnowsTheOptionIsToldByThePlanAndTheWorker) {
  add_golden(add_case("a", {"time"}, "", "  engine: misbehaving\n  timeout: 77s\n"), "time",
             R"("case_time":{"seconds":77.0,"began_ns":)");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "IDENTICAL") << reason("a");
}

}  // namespace
}  // namespace assay::run
