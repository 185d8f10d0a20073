// JUnit, JSON, TAP and the step summary as other programs read them, also of runs that were killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/report/sample_run.h"
#include "core/run/events.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
namespace sample = report::sample;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "<x a=\"1\">&amp; ]]> \x1b[31m\x01 \xE2\x80\xAE \xEF\xBF\xBE";

std::string line(std::string_view event, const Json& members) {
  Json json = {{"event", event}, {"t", 1e9}};
  json.update(members);
  return run::to_line(json);
}

// A journal with every verdict, hostile texts, two cases of one name and, unless `killed`, an end.
void write_journal(const fs::path& folder, bool killed) {
  std::string text =
      line("run_started", {{"schema", run::kEventSchema}, {"run_id", "r"}, {"command", {"assay", kHostile}}});
  const std::vector<std::string> verdicts = {"SKIPPED", "IDENTICAL", "EQUIVALENT", "XFAIL", "WAIVED",
                                             "XPASS",   "DRIFT",     "DIVERGED",   "FLAKY", "NOT_COMPARABLE",
                                             "INVALID", "INFRA",     "CRASHED"};
  for (size_t i = 0; i < verdicts.size() + 2; ++i) {
    CaseVerdict verdict;
    verdict.verdict = *parse_verdict(verdicts[i % verdicts.size()]);
    verdict.reason = verdict.declared = kHostile;
    verdict.metrics = {
        sample::metric("logprobs", verdict.verdict, {sample::finding(verdict.verdict, kHostile, 3, kHostile)})};
    if (verdict.verdict == Verdict::kWaived) verdict.judged = Verdict::kFlaky;
    if (verdict.verdict == Verdict::kDiverged) verdict.evidence = {sample::evidence(kHostile, {1, 2, 3}, {1, 9, 3})};
    const std::string id = "c" + std::to_string(i);
    text += line("case_planned", {{"case", id}, {"name", "two/roots"}, {"path", kHostile}, {"reproduce", kHostile}});
    if (killed && i >= verdicts.size()) continue;
    text +=
        line("case_finished",
             {{"case", id}, {"verdict", run::to_json(verdict)}, {"summary", {{"engine", kHostile}, {"seconds", 0.5}}}});
  }
  if (!killed) text += line("run_finished", {{"seconds", 60}});
  write_file(folder / "results.jsonl", text + (killed ? "{\"event\":\"case_fin" : ""));
}

std::string made(const fs::path& folder, const std::string& format) {
  const Output output = run_program("assay", {"report", folder.string(), "--format", format, "--output", "-"});
  EXPECT_EQ(output.code, 0) << output.err;
  return output.out;
}

TEST(ReportFormats, JunitOfWholeAndKilledRunsIsValid) {
  const fs::path xmllint = find_executable("xmllint");
  if (xmllint.empty()) GTEST_SKIP() << "xmllint is not installed: JUnit is not validated";
  const std::string schema = std::string(ASSAY_SOURCE_DIR) + "/tests/schemas/junit.xsd";
  for (const bool killed : {false, true}) {
    const TemporaryFolder folder;
    write_journal(folder.path(), killed);
    write_file(folder / "junit.xml", made(folder.path(), "junit"));
    const Output valid = run_file(xmllint, {"--noout", "--schema", schema, folder / "junit.xml"});
    EXPECT_EQ(valid.code, 0) << valid.err;
    const std::string xml = read_file(folder / "junit.xml");
    EXPECT_THAT(xml, HasSubstr("name=\"two/roots (15)\""));
    EXPECT_THAT(xml, HasSubstr("<rerunFailure"));
    EXPECT_THAT(xml, HasSubstr("<flakyFailure"));
    EXPECT_EQ(xml.find("never started") != std::string::npos, killed);
  }
}

TEST(ReportFormats, AFileThatBreaksTheRulesIsRefused) {
  const fs::path xmllint = find_executable("xmllint");
  if (xmllint.empty()) GTEST_SKIP() << "xmllint is not installed: JUnit is not validated";
  const TemporaryFolder folder;
  const std::string one = "<testcase name='a' classname='b' time='1'/>";
  write_file(folder / "junit.xml", "<testsuites><testsuite name='s' tests='2' failures='0' errors='0'>" + one + one +
                                       "</testsuite></testsuites>");
  EXPECT_NE(run_file(xmllint, {"--noout", "--schema", std::string(ASSAY_SOURCE_DIR) + "/tests/schemas/junit.xsd",
                               folder / "junit.xml"})
                .code,
            0);
}

TEST(ReportFormats, JsonFollowsItsPublishedSchema) {
  const fs::path python = find_executable("python3");
  if (python.empty() || run_file(python, {"-c", "import jsonschema"}).code != 0) {
    GTEST_SKIP() << "python3-jsonschema is not installed: JSON is not validated";
  }
  const std::string check =
      "import json, sys, jsonschema; schema = json.load(open(sys.argv[1])); "
      "jsonschema.Draft7Validator.check_schema(schema); "
      "jsonschema.Draft7Validator(schema).validate(json.load(open(sys.argv[2])))";
  const std::string schema = std::string(ASSAY_SOURCE_DIR) + "/docs/schemas/report.schema.json";
  for (const bool killed : {false, true}) {
    const TemporaryFolder folder;
    write_journal(folder.path(), killed);
    const std::string json = made(folder.path(), "json");
    write_file(folder / "report.json", json);
    const Output valid = run_file(python, {"-c", check, schema, folder / "report.json"});
    EXPECT_EQ(valid.code, 0) << valid.err;
    Json broken = Json::parse(json);
    EXPECT_EQ(broken["cases"].size(), 15u);
    EXPECT_EQ(broken["run"]["finished"], !killed);
    broken["cases"][0]["verdict"] = "FINE";
    write_file(folder / "report.json", broken.dump());
    EXPECT_NE(run_file(python, {"-c", check, schema, folder / "report.json"}).code, 0);
  }
}

TEST(ReportFormats, EveryFormatOfAKilledRunSaysThatItIsIncomplete) {
  const TemporaryFolder folder;
  write_journal(folder.path(), true);
  EXPECT_THAT(made(folder.path(), "tap"), HasSubstr("Bail out!"));
  EXPECT_THAT(made(folder.path(), "github"), HasSubstr("Incomplete"));
  EXPECT_THAT(made(folder.path(), "html"), HasSubstr("0 cases did not finish, 2 cases never started"));
}

TEST(ReportFormats, BadInputIsOneLine) {
  const TemporaryFolder folder;
  const auto refused = [](const std::vector<std::string>& words, const std::string& part) {
    const Output output = run_program("assay", words);
    EXPECT_EQ(output.code, 2) << output.err;
    EXPECT_THAT(output.err, HasSubstr(part));
  };
  refused({"report"}, "0 folders given");
  refused({"report", folder / "none"}, "no such folder");
  refused({"report", folder.path().string()}, "no results.jsonl");
  write_file(folder / "results.jsonl", "not a journal\n");
  refused({"report", folder.path().string()}, "results.jsonl:1: not a JSON object");
  write_journal(folder.path(), false);
  refused({"report", folder.path().string(), "--format", "pdf"}, "expected html, junit, json, tap or github");
  refused({"report", folder.path().string(), "--history", folder / "none"}, "--history");
  const Output output = run_program("assay", {"report", folder.path().string(), "--output", folder / "no/where.html"});
  EXPECT_EQ(output.code, 3);
  EXPECT_THAT(output.err, HasSubstr("the report is lost: " + (folder / "no/where.html") +
                                    ": cannot be written: No such file or directory; check"));
}

TEST(ReportFormats, ARunnerThatIsKilledLeavesJunitOfWhatWasFinished) {
  const TemporaryFolder folder;
  const std::string config =
      read_file(fs::path(ASSAY_SOURCE_DIR) / "testcases/moe/moe_10m_licences_fp32_b1/model_config.yaml");
  const auto add = [&](const std::string& name, const std::string& engine) {
    write_file(
        folder.path() / "cases" / name / "model_config.yaml",
        config.substr(0, config.find("METRICS:")) + "METRICS: [generated_text]\nASSAY:\n  engine: " + engine + "\n");
    write_file(folder.path() / "cases" / name / "golden_values_dev_any.json", R"({"0": {"generated_text": "a"}})");
    write_file(folder.path() / "cases" / name / "recorded.json", R"({"0": {"generated_text": "b"}})");
  };
  add("a_fails", "replay");
  add("b_hangs", "faulty");
  // Killed once one case has failed and the other one has begun.
  const std::string killed =
      "out=$1; shift; \"$@\" & p=$!; i=0; until grep -q '<failure' \"$out/junit.xml\" && "
      "grep -q 'case_started.*b_hangs' \"$out/results.jsonl\" || [ $((i += 1)) -gt 6000 ]; do sleep 0.05; done "
      "2>/dev/null; kill -KILL $p; wait $p";
  const Output run =
      run_file(find_executable("sh"), {"-c", killed, "sh", folder / "out", std::string(ASSAY_BINARY_DIR) + "/bin/assay",
                                       "run", folder / "cases", "--output", folder / "out", "--engine-options",
                                       R"({"fault":"hang"})", "--jobs", "2"});
  EXPECT_EQ(run.code, 128 + 9) << run.out << run.err;
  EXPECT_THAT(read_file(folder / "out/junit.xml"), HasSubstr("<failure"));
  const Output again = run_program("assay", {"report", folder / "out", "--format", "junit"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(read_file(folder / "out/junit.xml"), HasSubstr("did not finish"));
}

TEST(ReportFormats, ARunWritesTheFilesThatItIsAskedFor) {
  const TemporaryFolder folder;
  const std::string one = "testcases/moe/moe_10m_licences_text_only";
  const auto run = [&](const std::string& out) {
    return run_program("assay", {"run", one, "--output", folder / out, "--tap", folder / "run.tap", "--junit",
                                 folder / "j.xml", "--github-summary", folder / "summary.md"});
  };
  ASSERT_EQ(run("first").code, 0);
  ASSERT_EQ(run("second").code, 0);
  EXPECT_THAT(read_file(folder / "run.tap"), HasSubstr("ok 1 - "));
  EXPECT_THAT(read_file(folder / "j.xml"), HasSubstr("failures=\"0\""));
  EXPECT_THAT(read_file(folder / "summary.md"), HasSubstr("## assay: 1 passed"));
  EXPECT_THAT(read_file(folder / "second/report.html"), HasSubstr("../first/report.html"));
  EXPECT_THAT(read_file(folder / "first/report.html"), Not(HasSubstr("../second")));
  EXPECT_EQ(Json::parse(read_file(folder / "second/report.json"))["totals"]["passed"], 1);
}

}  // namespace
}  // namespace assay::tests
