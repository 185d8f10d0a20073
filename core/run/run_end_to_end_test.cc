// Whole runs: config files in, verdicts and an output folder out. The test engine does what each prompt says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/golden.h"
#include "core/run/run_fixture.h"

namespace assay::run {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Run, CaseThatEqualsItsGoldenIsIdentical) {
  add_golden(add_case("same", {"ok hallo"}), "ok hallo", "hallo");
  add_golden(add_case("other", {"ok hallo"}), "ok hallo", "holla");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("same"), "IDENTICAL");
  EXPECT_EQ(verdict("other"), "DIVERGED");
  EXPECT_EQ(exit_code(summary().verdicts()), 1);
  EXPECT_THAT(outcome("same").verdict.golden, HasSubstr("golden_values_dev_here.json"));
  EXPECT_EQ(outcome("same").summary.engine, "misbehaving");
  EXPECT_THAT(outcome("other").reproduce, AllOf(HasSubstr("assay run "), HasSubstr("--platform here")));
}

TEST_F(Run, JournalBeginsWithTheSchemaAndEndsWithTheCounts) {
  add_golden(add_case("same", {"ok hallo"}), "ok hallo", "hallo");
  options_.command = {"assay", "run", "cases"};
  run();
  const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
  ASSERT_TRUE(lines.ok());
  const Json first = *parse_line(lines->front());
  EXPECT_EQ(first["event"], "run_started");
  EXPECT_EQ(first["schema"], kEventSchema);
  EXPECT_EQ(first["run_id"], summary().run_id);
  EXPECT_EQ(first["command"], Json({"assay", "run", "cases"}));
  const Json last = *parse_line(lines->back());
  EXPECT_EQ(last["event"], "run_finished");
  EXPECT_EQ(last["counts"], Json({{"IDENTICAL", 1}}));
  EXPECT_EQ(last["exit_code"], 0);
}

TEST_F(Run, CasesWithEqualEnvironmentShareOneLoadAndOthersDoNot) {
  for (const char* name : {"a", "b", "c"}) add_case(name, {"env COLOUR"}, "ENV_VARS:\n  COLOUR: red\n");
  add_case("d", {"env COLOUR"}, "ENV_VARS:\n  COLOUR: ${SHADE}\n");
  options_.variables["SHADE"] = "blue";
  run();
  EXPECT_EQ(summary().loads, 2u);
  EXPECT_EQ(events(event::kLoadFinished), 2u);
  EXPECT_EQ(*read_results(outcome("c").actual)->requests[0].text, "red");
  EXPECT_EQ(*read_results(outcome("d").actual)->requests[0].text, "blue");
}

TEST_F(Run, DeterministicModeNeedsAnEngineThatClaimsTheLevels) {
  add_golden(add_case("same", {"ok hallo"}, "  --deterministic-mode: true\n"), "ok hallo", "hallo");
  run();
  EXPECT_EQ(verdict("same"), "INVALID");
  EXPECT_THAT(reason("same"), HasSubstr("--deterministic-mode: engine misbehaving does not hold L1, L2, L3"));
}

TEST_F(Run, ProblemOfOneCaseCostsThatCaseAlone) {
  add_golden(add_case("good", {"ok hallo"}), "ok hallo", "hallo");
  add_case("unknown_argument", {"ok a"}, "  --num-layer: 4\n");
  add_case("unset_variable", {"ok a"}, "  --seq-length: ${NOWHERE_SET}\n");
  add_case("no_engine", {"ok a"}, "", "  engine: absent\n");
  add_case("preload", {"ok a"}, "ENV_VARS:\n  LD_PRELOAD: x.so\n");
  add_case("script", {"ok a"}, "BEFORE_SCRIPT: |\n  rm -rf /nowhere\n");
  add_case("no_prompts", {"ok a"});
  fs::remove(dir_ / "cases/no_prompts/prompts.jsonl");
  fs::create_directories(dir_ / "cases/broken");
  std::ofstream(dir_ / "cases/broken/model_config.yaml") << "MODE: inference\nMODEL_ARGS: [\n";
  std::ofstream(add_case("bad_golden", {"ok a"}) / "golden_values_dev_here.json") << "{\"0\": ";
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("good"), "IDENTICAL");
  EXPECT_THAT(reason("unknown_argument"), AllOf(HasSubstr("--num-layer"), HasSubstr("--num-layers")));
  EXPECT_THAT(reason("unset_variable"), AllOf(HasSubstr("NOWHERE_SET"), HasSubstr("--set")));
  EXPECT_THAT(reason("no_engine"), HasSubstr("no engine 'absent'"));
  EXPECT_THAT(reason("preload"), AllOf(HasSubstr("LD_PRELOAD"), HasSubstr("--allow-scripts")));
  EXPECT_THAT(reason("script"), AllOf(HasSubstr("a BEFORE_SCRIPT"), HasSubstr("engine misbehaving starts no program"),
                                      HasSubstr("--engine process")));
  EXPECT_THAT(reason("no_prompts"), HasSubstr("prompts.jsonl"));
  EXPECT_THAT(reason("broken"), HasSubstr("model_config.yaml"));
  EXPECT_THAT(reason("bad_golden"), HasSubstr("golden_values_dev_here.json"));
  for (const CaseOutcome& one : summary().outcomes) {
    EXPECT_EQ(one.verdict.verdict, one.name == "good" ? Verdict::kIdentical : Verdict::kInvalid) << one.name;
  }
  EXPECT_EQ(events(event::kCaseFinished), 9u);
}

TEST_F(Run, MissingGoldenStillRunsAndIsNotComparable) {
  add_case("bare", {"ok hallo"});
  run();
  EXPECT_EQ(verdict("bare"), "NOT_COMPARABLE");
  EXPECT_EQ(*read_results(outcome("bare").actual)->requests[0].text, "hallo");
}

TEST_F(Run, MissingRequirementOrAnotherModeIsSkippedWithAReason) {
  add_case("needs_variable", {"ok a"}, "", "  engine: misbehaving\n  requires: [SECRET_DATA]\n");
  add_case("needs_card", {"ok a"}, "", "  engine: misbehaving\n  requires: [fake_absent]\n");
  fs::create_directories(dir_ / "cases/training");
  std::ofstream(dir_ / "cases/training/model_config.yaml") << "TEST_TYPE: regular\nMODEL_ARGS:\n  --num-layers: 2\n";
  run();
  EXPECT_EQ(verdict("needs_variable"), "SKIPPED");
  EXPECT_THAT(reason("needs_variable"), HasSubstr("SECRET_DATA"));
  EXPECT_EQ(verdict("needs_card"), "SKIPPED");
  EXPECT_THAT(reason("needs_card"), HasSubstr("no such card"));
  EXPECT_EQ(verdict("training"), "SKIPPED");
  EXPECT_EQ(exit_code(summary().verdicts()), 4);
}

TEST_F(Run, PathsAndDevicesMayBeRequired) {
  const std::string engine = "  engine: misbehaving\n";
  add_case("unset", {"ok a"}, "", engine + "  requires: ['path:${SECRET_DATA}/weights']\n");
  add_case("no_card", {"ok a"}, "", engine + "  requires: ['device:fake_absent']\n");
  add_case("no_backend", {"ok a"}, "", engine + "  requires: ['device:SECRET_DATA']\n");
  run();
  EXPECT_EQ(verdict("unset"), "SKIPPED");
  EXPECT_THAT(reason("unset"), HasSubstr("SECRET_DATA"));
  EXPECT_THAT(reason("no_card"), HasSubstr("no such card"));
  EXPECT_THAT(reason("no_backend"), HasSubstr("requires device:SECRET_DATA: no such backend"));
  options_.variables["SECRET_DATA"] = dir_.string();
  run();
  EXPECT_THAT(reason("unset"), HasSubstr((dir_ / "weights").string() + " does not exist"));
  EXPECT_EQ(verdict("no_backend"), "SKIPPED");  // a device is no variable
  fs::create_directories(dir_ / "weights");
  fs::remove_all(dir_ / "cases/no_card");
  fs::remove_all(dir_ / "cases/no_backend");
  add_golden(add_case("card", {"ok a"}, "", engine + "  requires: ['device:fake_low']\n"), "ok a", "a");
  add_golden(dir_ / "cases/unset", "ok a", "a");
  run();
  EXPECT_EQ(verdict("unset"), "IDENTICAL");
  EXPECT_EQ(verdict("card"), "IDENTICAL");
}

TEST_F(Run, PresentRequirementRuns) {
  add_golden(add_case("has_both", {"ok a"}, "", "  engine: misbehaving\n  requires: [SECRET_DATA, fake_low]\n"), "ok a",
             "a");
  options_.variables["SECRET_DATA"] = "/data";
  run();
  EXPECT_EQ(verdict("has_both"), "IDENTICAL");
}

TEST_F(Run, FilterLeavesOutAndItsErrorFailsTheRun) {
  add_case("one", {"ok a"});
  add_case("two", {"ok a"});
  options_.filter = "one or metric:throughput";
  run();
  EXPECT_EQ(summary().outcomes.size(), 1u);
  EXPECT_EQ(observer_.started.filtered, 1u);
  options_.filter = "one or";
  run();
  ASSERT_FALSE(result_->ok());
  EXPECT_THAT(result_->status().message(), HasSubstr("--filter, column 7"));
}

TEST_F(Run, UnknownEngineOrBackendOfTheWholeRunFailsIt) {
  add_case("one", {"ok a"});
  options_.engine = "absent";
  run();
  EXPECT_EQ(result_->status().code(), StatusCode::kInvalid);
  options_.engine.clear();
  options_.backend = "quantum";
  run();
  EXPECT_THAT(result_->status().message(), HasSubstr("there is no backend 'quantum'"));
}

TEST_F(Run, RemovedComparatorMakesItsMetricNotComparable) {
  const fs::path plugins = dir_ / "plugins";
  fs::create_directories(plugins);
  fs::copy_file(kBuild / "tests/plugins/engine_misbehaving.so", plugins / "engine_misbehaving.so");
  fs::copy_file(kBuild / "lib/assay/plugins/comparator_generated_text.so", plugins / "comparator_generated_text.so");
  options_.plugins.plugin_path.clear();
  options_.plugins.install_dir = plugins;
  add_golden(add_case("text", {"ok hallo"}), "ok hallo", "hallo");
  add_golden(add_case("both", {"ok hallo"}, "METRICS: [generated_text, generated_tokens]\n"), "ok hallo", "hallo");
  run();
  EXPECT_EQ(verdict("text"), "IDENTICAL");
  EXPECT_EQ(verdict("both"), "NOT_COMPARABLE");
  const Json metrics = to_json(outcome("both").verdict)["metrics"];
  EXPECT_THAT(metrics.dump(), HasSubstr("comparator_generated_tokens.so"));
  fs::remove(plugins / "comparator_generated_text.so");
  run();
  EXPECT_EQ(verdict("text"), "NOT_COMPARABLE");
}

TEST_F(Run, ReplayJudgesTheResultsOfAnEarlierRun) {
  for (const char* name : {"a", "b"}) add_golden(add_case(name, {"ok hallo"}), "ok hallo", "hallo");
  run();
  EXPECT_EQ(verdict("b"), "IDENTICAL");
  options_.recorded = options_.output;
  options_.output = dir_ / "again";
  options_.engine = "replay";
  add_golden(dir_ / "cases/a", "ok hallo", "changed since");
  run();
  ASSERT_TRUE(result_->ok()) << result_->status().message();
  EXPECT_EQ(verdict("a"), "DIVERGED");
  EXPECT_EQ(verdict("b"), "IDENTICAL");
  EXPECT_EQ(outcome("b").summary.engine, "replay");
}

TEST_F(Run, ReplayWithoutRecordedResultsTakesTheGoldenAndWithoutThatSaysWhatIsMissing) {
  add_golden(add_case("golden", {"ok hallo"}), "ok hallo", "hallo");
  add_case("nothing", {"ok hallo"});
  options_.engine = "replay";
  run();
  EXPECT_EQ(verdict("golden"), "IDENTICAL");
  EXPECT_EQ(verdict("nothing"), "INVALID");
  EXPECT_THAT(reason("nothing"), AllOf(HasSubstr("recorded.json"), HasSubstr("--recorded")));
}

TEST_F(Run, ReplayAsksForTheRequestsThatTheFileHasWhateverTheirIds) {
  const fs::path folder = add_case("ids", {"not asked"});
  std::ofstream(folder / "golden_values_dev_here.json")
      << R"({"0": {"generated_text": "a"}, "32": {"generated_text": "b"}, "last": {"generated_text": "c"}})";
  options_.engine = "replay";
  run();
  EXPECT_EQ(verdict("ids"), "IDENTICAL") << reason("ids");
  EXPECT_EQ(outcome("ids").summary.requests, 3u);
}

TEST_F(Run, ReplayBringsQuantitiesAndTheTokensOfRouting) {
  const fs::path folder =
      add_case("moe", {"not asked"}, "METRICS: [routing_indices, throughput, mem-max-allocated-bytes]\n");
  const auto write = [&](const char* name, const std::string& throughput) {
    std::ofstream(folder / name) << R"({"0": {"generated_tokens": [5, 6], "routing_indices": [[[3, 1]], [[2, 0]]],)"
                                 << R"( "routing_indices_token_indices": [2, 7]}, "throughput": )" << throughput
                                 << R"(, "mem-max-allocated-bytes": 1048576})";
  };
  write("golden_values_dev_here.json", "[1, 100, 102]");
  options_.engine = "replay";
  run();
  EXPECT_EQ(verdict("moe"), "IDENTICAL") << reason("moe");
  write("recorded.json", "[1, 50, 51]");
  options_.output = dir_ / "slower";
  run();
  EXPECT_EQ(verdict("moe"), "DRIFT");
  EXPECT_THAT(reason("moe"), HasSubstr("50.00 % slower"));
}

TEST_F(Run, ReplayJudgesAFileOfThroughputAlone) {
  const fs::path folder = add_case("speed", {"not asked"}, "METRICS: [throughput]\n");
  std::ofstream(folder / "golden_values_dev_here.json") << R"({"throughput": [1, 100, 102]})";
  options_.engine = "replay";
  run();
  EXPECT_EQ(verdict("speed"), "IDENTICAL") << reason("speed");
}

TEST_F(Run, RecordedCasesAreSpreadOverAllJobs) {
  options_.engine = "replay";
  options_.jobs = 2;
  for (int i = 0; i < 80; ++i) {
    const fs::path folder = add_case("case" + std::to_string(i), {"ok hallo"});
    add_golden(folder, "ok hallo", "hallo");
    fs::copy_file(folder / "golden_values_dev_here.json", folder / "recorded.json");
  }
  run();
  EXPECT_EQ(exit_code(summary().verdicts()), 0);
  EXPECT_EQ(events(event::kWorkerStarted), 2u);
  EXPECT_EQ(observer_.order.size(), 80u);
}

TEST_F(Run, SecondRunOnALockedFolderIsRefused) {
  add_case("one", {"ok a"});
  fs::create_directories(options_.output);
  class Second : public Silent {
   public:
    explicit Second(const RunOptions& options) : options_(options) {}
    void run_started(const RunInfo&) override {
      Silent ignored;
      inner = run::run(options_, ignored).status();
    }
    Status inner;

   private:
    const RunOptions& options_;
  };
  Result<std::vector<TestCase>> cases = discover::discover({(dir_ / "cases").string()});
  options_.cases = *std::move(cases);
  Second observer(options_);
  EXPECT_TRUE(run::run(options_, observer).ok());
  EXPECT_EQ(observer.inner.code(), StatusCode::kInvalid);
  EXPECT_THAT(observer.inner.message(), HasSubstr("in use by process"));
}

TEST_F(Run, OldResultIsNotTakenForThisRunsWhenTheEngineCrashes) {
  add_golden(add_case("one", {"ok a"}), "ok a", "a");
  run();
  ASSERT_TRUE(fs::exists(options_.output / "cases/one/actual.json"));
  add_golden(add_case("one", {"segv"}), "segv", "a");
  run();
  EXPECT_EQ(verdict("one"), "CRASHED");
  EXPECT_FALSE(fs::exists(options_.output / "cases/one/actual.json"));
  EXPECT_THAT(outcome("one").actual, IsEmpty());
  EXPECT_THAT(outcome("one").log, HasSubstr("cases/one/engine.log"));
}

TEST_F(Run, LeftoversOfAnEarlierRelationAreRemovedThoughNoWorkerStarts) {
  add_case("one", {"ok a"});
  const fs::path folder = options_.output / "cases/one";
  fs::create_directories(folder / "resaved");
  std::ofstream(options_.output / ".lock");  // a run was here before
  for (const char* name : {"actual.json", "reference.json", "resaved/weights"}) std::ofstream(folder / name) << "{}";
  options_.worker = "/bin/false";
  run();
  EXPECT_EQ(verdict("one"), "INFRA");
  for (const char* name : {"actual.json", "reference.json", "resaved"}) EXPECT_FALSE(fs::exists(folder / name)) << name;
}

TEST_F(Run, ExplicitOutputPathGetsACopyOfTheResults) {
  add_golden(add_case("one", {"ok a"}), "ok a", "a");
  options_.variables["INFERENCE_OUTPUT_PATH"] = (dir_ / "wanted.json").string();
  run();
  EXPECT_EQ(*read_file(dir_ / "wanted.json"), *read_file(options_.output / "cases/one/actual.json"));
}

TEST_F(Run, TimeoutOfTheCaseCounts) {
  add_case("slow", {"hang"}, "", "  engine: misbehaving\n  timeout: 0.3s\n");
  run();
  EXPECT_EQ(verdict("slow"), "CRASHED");
  EXPECT_THAT(reason("slow"), HasSubstr("no verdict after 0.3 s"));
}

TEST_F(Run, MemoryLimitOfTheCaseCounts) {
  add_case("greedy", {"eat"}, "", "  engine: misbehaving\n  memory_limit: 300MB\n");
  run();
  EXPECT_EQ(verdict("greedy"), "CRASHED");
  EXPECT_THAT(reason("greedy"), HasSubstr("the limit is 0.3"));
}

TEST_F(Run, MissingWorkerFailsTheRun) {
  options_.worker = dir_ / "no-worker";
  run();
  EXPECT_EQ(result_->status().code(), StatusCode::kInfra);
}

}  // namespace
}  // namespace assay::run
