// Waivers and repeats as a user meets them: config files and the assay program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// A case whose recorded result says `result` where the golden says "gold".
void write_waived_case(const std::filesystem::path& folder, const std::string& result, const std::string& waivers) {
  write_file(folder / "model_config.yaml",
             "MODE: inference\nTEST_TYPE: frozen-start\nMODEL_ARGS:\n  --load: nowhere\nMETRICS: [generated_text]\n"
             "ASSAY:\n  engine: replay\n" +
                 waivers);
  write_file(folder / "golden_values_dev_here.json", R"({"0": {"input_prompt": "a", "generated_text": "gold"}})");
  write_file(folder / "recorded.json", R"({"0": {"input_prompt": "a", "generated_text": ")" + result + R"("}})");
}

std::string waiver(const std::string& expires, const std::string& verdicts) {
  return "  waivers:\n    - reason: known defect\n      owner: kim\n      issue: https://example.org/1\n      "
         "expires: " +
         expires + "\n      verdicts: " + verdicts + "\n";
}

json run_in(const TemporaryFolder& folder, int code, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"run",    folder / "cases", "--platform",  "here",
                                    "--json", "--output",       folder / "out"};
  words.insert(words.end(), more.begin(), more.end());
  std::filesystem::remove_all(folder.path() / "out");  // a run is not replaced
  const Output run = run_program("assay", words);
  EXPECT_EQ(run.code, code) << run.out << run.err;
  return json::parse(run.out, nullptr, false);
}

TEST(Waivers, FailureUnderAWaiverPassesTheRunUntilItExpires) {
  const TemporaryFolder folder;
  write_waived_case(folder / "cases/one", "dross", waiver("2999-12-31", "[DIVERGED]"));
  const json waived = run_in(folder, 0)[0];
  EXPECT_EQ(waived["verdict"], "WAIVED");
  EXPECT_EQ(waived["judged"], "DIVERGED");
  EXPECT_THAT(waived["declared"], HasSubstr("known defect (kim, https://example.org/1; until 2999-12-31"));
  write_waived_case(folder / "cases/one", "dross", waiver("2020-12-31", "[DIVERGED]"));
  EXPECT_EQ(run_in(folder, 1)[0]["verdict"], "DIVERGED");
  EXPECT_THAT(read_file(folder / "out/results.jsonl"), HasSubstr("expired on 2020-12-31"));
  write_waived_case(folder / "cases/one", "dross", waiver("2999-12-31", "[DRIFT]"));
  EXPECT_EQ(run_in(folder, 1)[0]["verdict"], "DIVERGED");
}

TEST(Waivers, UnusedOneIsListedAndExpectedFailureThatPassesFails) {
  const TemporaryFolder folder;
  write_waived_case(folder / "cases/one", "gold", waiver("2999-12-31", "[DIVERGED]"));
  EXPECT_EQ(run_in(folder, 0)[0]["verdict"], "IDENTICAL");
  EXPECT_THAT(read_file(folder / "out/results.jsonl"), HasSubstr("\"unused_waivers\":[\"one\"]"));
  write_waived_case(folder / "cases/one", "gold", waiver("2999-12-31", "[DIVERGED]") + "      expect_failure: true\n");
  EXPECT_EQ(run_in(folder, 1)[0]["verdict"], "XPASS");
  write_waived_case(folder / "cases/one", "dross", waiver("2999-12-31", "[DIVERGED]") + "      expect_failure: true\n");
  EXPECT_EQ(run_in(folder, 0)[0]["verdict"], "XFAIL");
}

TEST(Waivers, BrokenOneIsTheVerdictOfItsCaseAndTheOthersRun) {
  const TemporaryFolder folder;
  write_waived_case(folder / "cases/bad", "gold", waiver("tomorrow", "[DIVERGED]"));
  write_waived_case(folder / "cases/good", "gold", "");
  const json cases = run_in(folder, 1);
  EXPECT_EQ(cases[0]["verdict"], "INVALID");
  EXPECT_THAT(cases[0]["reason"], HasSubstr("expires 'tomorrow' is no day such as 2027-01-31"));
  EXPECT_EQ(cases[1]["verdict"], "IDENTICAL");
  const Output list = run_program("assay", {"list", folder / "cases", "--json"});
  EXPECT_THAT(json::parse(list.out)[0]["error"], AllOf(HasSubstr("model_config.yaml:12:"), HasSubstr("'tomorrow'")));
  const Output show = run_program("assay", {"show", folder / "cases/bad"});
  EXPECT_EQ(show.code, 1);
  EXPECT_THAT(show.out, HasSubstr("'tomorrow'"));
}

TEST(Waivers, CompareAppliesThemByTheNameOfTheGolden) {
  const TemporaryFolder folder;
  const auto compare = [&] {
    return run_program("assay", {"compare", folder / "one/golden_values_dev_here.json", folder / "one/recorded.json",
                                 "--config", folder / "one/model_config.yaml"});
  };
  write_waived_case(folder / "one", "dross", waiver("2999-12-31", "[DIVERGED]") + "      platforms: [here]\n");
  const Output waived = compare();
  EXPECT_EQ(waived.code, 0) << waived.out << waived.err;
  EXPECT_THAT(waived.out, HasSubstr("declared: judged DIVERGED, waived: known defect (kim, https://example.org/1;"));
  write_waived_case(folder / "one", "dross", waiver("2999-12-31", "[DIVERGED]") + "      platforms: [elsewhere]\n");
  EXPECT_EQ(compare().code, 1);
}

TEST(Waivers, ShowListsThemWithTheDaysLeft) {
  const TemporaryFolder folder;
  write_waived_case(folder / "one", "gold", waiver("2999-12-31", "[DIVERGED, FLAKY]"));
  const Output text = run_program("assay", {"show", folder / "one"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("waivers (1)\n  DIVERGED, FLAKY, until 2999-12-31, "), HasSubstr(" days left"),
                              HasSubstr("known defect (kim, https://example.org/1)")));
  const json shown = json::parse(run_program("assay", {"show", folder / "one", "--json"}).out, nullptr, false);
  ASSERT_EQ(shown["waivers"].size(), 1U);
  EXPECT_GT(shown["waivers"][0]["days_left"], 300000);
}

TEST(Repeat, EveryCaseIsRunThatOftenAndComparedWithItself) {
  const TemporaryFolder folder;
  write_waived_case(folder / "cases/one", "gold", "");
  const json cases = run_in(folder, 0, {"--repeat", "3"});
  EXPECT_EQ(cases[0]["verdict"], "IDENTICAL");
  EXPECT_THAT(cases[0]["reason"], HasSubstr("3 repeats, bit-equal"));
  EXPECT_NE(read_file(folder / "out/cases/one/repeat_3/actual.json"), "");
  const Output refused = run_program("assay", {"run", folder / "cases", "--repeat", "0"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--repeat 0: expected 1 to 1000"));
}

}  // namespace
}  // namespace assay::tests
