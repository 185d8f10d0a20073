// Inference cases whose words say that nothing is to be compared.
#include <gmock/gmock.h>

#include "assay/golden.h"
#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using testing::HasSubstr;

class Uncompared : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    options_.compat = true;
  }
  std::string compat(const std::string& name) const {
    const std::optional<CompatVerdict>& verdict = outcome(name).verdict.compat;
    return verdict ? to_string(verdict->outcome) : "none";
  }
};

TEST_F(Uncompared, TheRunIsSkippedOnceItHasEndedWellAndItsResultsStay) {
  const std::string light = "ENV_VARS:\n  ENABLE_LIGHTWEIGHT_MODE: true\n  N_REPEAT: 3\n";
  add_golden(add_case("light", {"ok hallo"}, light), "ok hallo", "other");
  add_golden(add_case("skips", {"ok hallo"}, "ENV_VARS:\n  SKIP_PYTEST: 1\n"), "ok hallo", "other");
  add_golden(add_case("judged", {"ok hallo"}, "ENV_VARS:\n  SKIP_PYTEST: 0\n"), "ok hallo", "hallo");
  add_case("no_golden", {"ok hallo"}, light);
  add_case("dies", {"exit"}, light);
  run();
  for (const char* name : {"light", "skips", "no_golden"}) {
    EXPECT_EQ(verdict(name), "SKIPPED") << name << reason(name);
    EXPECT_THAT(reason(name), HasSubstr("the run ended well, nothing was compared"));
    EXPECT_EQ(*read_results(outcome(name).actual)->requests[0].text, "hallo") << name;
    EXPECT_EQ(compat(name), "skipped");
  }
  EXPECT_TRUE(outcome("light").repeats.empty()) << "once, as the script does";
  EXPECT_THAT(reason("light"), HasSubstr("ENABLE_LIGHTWEIGHT_MODE: "));
  EXPECT_THAT(reason("skips"), HasSubstr("SKIP_PYTEST: "));
  EXPECT_EQ(verdict("judged"), "IDENTICAL") << reason("judged");
  EXPECT_EQ(compat("judged"), "passed");
  EXPECT_EQ(verdict("dies"), "CRASHED");
  EXPECT_EQ(compat("dies"), "failed") << "the exit code of the program counts";
}

TEST_F(Uncompared, WordsOfTheRunCountForEveryCase) {
  add_golden(add_case("case", {"ok hallo"}), "ok hallo", "other");
  run();
  EXPECT_EQ(verdict("case"), "DIVERGED") << reason("case");
  options_.variables["RECORD_CHECKPOINTS"] = "true";
  run();
  EXPECT_THAT(reason("case"), HasSubstr("RECORD_CHECKPOINTS: "));
  options_.variables.clear();
  options_.environment["ENABLE_LIGHTWEIGHT_MODE"] = "true";
  run();
  EXPECT_THAT(reason("case"), HasSubstr("ENABLE_LIGHTWEIGHT_MODE: "));
  options_.repeat = 2;
  run();
  EXPECT_EQ(verdict("case"), "SKIPPED");
  EXPECT_EQ(outcome("case").repeats.size(), 2u) << "the command asks for them";
}

TEST_F(Uncompared, ARequestThatFailsIsNoGoodEnd) {
  add_case("fails", {"ok a", "fail"}, "ENV_VARS:\n  SKIP_PYTEST: 1\n");
  run();
  EXPECT_EQ(verdict("fails"), "INVALID") << reason("fails");
}

}  // namespace
}  // namespace assay::run
