// Training cases through plan, worker, phases and verdict, with a test engine that acts as the training program.
#include <gmock/gmock.h>

#include "core/run/run_fixture.h"
#include "core/train/job.h"
#include "core/train/metric_file.h"

namespace assay::run {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Training : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    options_.engine = "training";
    options_.compat = true;
    options_.variables["TRAINING_SCRIPT_PATH"] = "pretrain.py";
  }
  // A case of 20 steps whose golden is what the engine logs; `args`: further lines of MODEL_ARGS.
  fs::path add(const std::string& name, const std::string& type, const std::string& args = "",
               const std::string& more = "") {
    fs::path folder = dir_ / "cases" / name;
    fs::create_directories(folder);
    std::ofstream(folder / "model_config.yaml")
        << "TEST_TYPE: " << type << "\nMODE: pretraining\nMODEL_ARGS:\n  --train-iters: 20\n  --save-interval: 10\n"
        << "  --save: ${CHECKPOINT_SAVE_PATH}\n  --load: ${CHECKPOINT_LOAD_PATH}\n"
        << args << more << (more.find("METRICS") == std::string::npos ? "METRICS: [lm loss]\n" : "");
    train::MetricSet golden;
    train::Metric loss{"lm loss", 1, 20, 1, {}};
    for (int step = 1; step <= 20; ++step)
      loss.values.push_back({step, train::round5(static_cast<float>(10 - step / 100.0)), false});
    golden.metrics.push_back(loss);
    EXPECT_TRUE(train::write_metrics((folder / "golden_values_dev_here.json").string(), golden).ok());
    return folder;
  }
  fs::path folder_of(const std::string& name) const { return options_.output / "cases" / name; }
  train::Job job(const std::string& name, int run) const {
    std::ifstream file(folder_of(name) / fmt_run(run) / "logs" / ("job_" + std::to_string(run) + ".json"));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    Result<train::Job> read = train::parse_job(text);
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read ? *read : train::Job();
  }
  static std::string fmt_run(int run) { return "run_" + std::to_string(run); }
  // Of the event that ended the case.
  Json compat(const std::string& name) const {
    const Result<std::vector<std::string>> lines = read_event_lines(options_.output / "results.jsonl");
    for (const std::string& line : *lines) {
      const Result<Json> event = parse_line(line);
      if (event && (*event)["event"] == "case_finished" && event->value("name", "") == name)
        return (*event)["verdict"].value("compat", Json::object());
    }
    return {};
  }
};

TEST_F(Training, ARegularCaseIsTrainedAndJudged) {
  add("good", "regular");
  add("drifting", "regular", "  --drift-at: 7\n");
  add("loose", "regular", "  --drift-at: 7\n", "ENV_VARS:\n  NON_DETERMINSTIC_RESULTS: 1\n");
  add("short", "regular", "  --stop-at: 15\n");
  add("skipping", "regular", "  --skip-at: 5\n");
  add("nan", "regular", "  --nan-at: 5\n");
  add("silent", "regular", "  --stop-at: 1\n");
  add("other_metric", "regular", "", "METRICS: [num-zeros]\n");
  add("no_metric", "regular", "", "METRICS: []\n");
  fs::remove(add("no_golden", "regular") / "golden_values_dev_here.json");
  run();
  EXPECT_EQ(verdict("good"), "IDENTICAL") << reason("good");
  EXPECT_EQ(compat("good")["verdict"], "passed");
  EXPECT_EQ(verdict("drifting"), "DRIFT");
  EXPECT_THAT(reason("drifting"), HasSubstr("lm loss: step 7: 9.931, the golden has 9.93"));
  EXPECT_EQ(compat("drifting")["verdict"], "failed");
  EXPECT_EQ(verdict("loose"), "EQUIVALENT") << reason("loose");
  EXPECT_EQ(verdict("short"), "INVALID");
  EXPECT_THAT(reason("short"), HasSubstr("step 15 is missing from the run: 6 of 20 steps are"));
  EXPECT_EQ(verdict("skipping"), "INVALID");
  EXPECT_EQ(verdict("nan"), "INVALID");
  EXPECT_THAT(reason("nan"), HasSubstr("step 5 is nan"));
  EXPECT_EQ(compat("nan")["verdict"], "failed");
  EXPECT_EQ(verdict("silent"), "INVALID");
  EXPECT_THAT(reason("silent"), HasSubstr("holds a scalar"));
  EXPECT_EQ(verdict("other_metric"), "NOT_COMPARABLE");
  EXPECT_EQ(verdict("no_metric"), "NOT_COMPARABLE");
  EXPECT_EQ(compat("no_metric")["verdict"], "passed") << "their hole";
  EXPECT_EQ(verdict("no_golden"), "NOT_COMPARABLE");
  const Result<train::MetricSet> actual = train::read_metrics(outcome("good").actual);
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  EXPECT_EQ(actual->find("lm loss")->values.size(), 20u);
  const train::Job sent = job("good", 1);
  EXPECT_EQ(sent.script, "pretrain.py");
  EXPECT_THAT(sent.arguments, Contains("--exit-interval")) << "set to --train-iters";
  EXPECT_THAT(sent.folders.load, HasSubstr("nothing_to_load"));
  EXPECT_EQ(sent.environment.at("RUN_NUMBER"), "1");
  EXPECT_THAT(sent.arguments, Contains(sent.folders.save));
}

TEST_F(Training, AResumedRunIsComparedWithTheFirst) {
  add("good", "ckpt-resume");
  add("drifting", "ckpt-resume", "  --resume-drift: 0.01\n");
  add("fresh", "ckpt-resume", "  --ignore-load: true\n");
  add("odd", "ckpt-resume", "  --save-interval: 7\n");
  add("second", "ckpt-resume", "", "MODEL_ARGS_2:\n  --train-iters: 20\n  --exit-interval: 20\n  --other: true\n");
  run();
  EXPECT_EQ(verdict("good"), "IDENTICAL") << reason("good");
  EXPECT_EQ(compat("good")["verdict"], "passed") << compat("good");
  EXPECT_EQ(verdict("drifting"), "DRIFT");
  EXPECT_THAT(reason("drifting"), HasSubstr("run 2 against run 1: lm loss: step 11"));
  EXPECT_EQ(compat("drifting")["verdict"], "failed");
  EXPECT_EQ(verdict("fresh"), "INVALID");
  EXPECT_THAT(reason("fresh"), HasSubstr("did not resume"));
  EXPECT_EQ(compat("fresh")["verdict"], "passed") << "their hole";
  EXPECT_EQ(verdict("odd"), "INVALID");
  EXPECT_THAT(reason("odd"), HasSubstr("saved no iter_0000010"));
  EXPECT_EQ(verdict("second"), "IDENTICAL") << reason("second");
  EXPECT_THAT(job("second", 2).arguments, Contains("--other"));
  EXPECT_THAT(job("second", 1).arguments, Not(Contains("--other")));
  EXPECT_TRUE(fs::exists(folder_of("good") / "checkpoints/iter_0000020")) << "what run 1 saved stays";
  EXPECT_TRUE(fs::exists(folder_of("good") / "actual_2nd.json"));
}

TEST_F(Training, FrozenCasesBeginFromTheCheckpointThatIsGiven) {
  const fs::path frozen = dir_ / "frozen";
  fs::create_directories(frozen / "iter_0000010");
  std::ofstream(frozen / "latest_checkpointed_iteration.txt") << "10\n";
  options_.variables["CHECKPOINT_LOAD_PATH"] = frozen.string();
  add("start", "frozen-start");
  add("resume", "frozen-resume");
  add("drifting", "frozen-resume", "  --resume-drift: 0.01\n");
  run();
  EXPECT_EQ(job("start", 1).folders.load, frozen.string());
  EXPECT_EQ(verdict("start"), "INVALID") << "its golden begins at step 1, the run at 11";
  EXPECT_EQ(verdict("resume"), "IDENTICAL") << reason("resume");
  EXPECT_EQ(job("resume", 2).folders.load, frozen.string());
  EXPECT_EQ(verdict("drifting"), "DRIFT");
  fs::remove_all(frozen);
  fs::create_directories(frozen);
  run();
  EXPECT_EQ(verdict("resume"), "NOT_COMPARABLE");
  EXPECT_THAT(reason("resume"), HasSubstr("no frozen checkpoint"));
  EXPECT_EQ(compat("resume")["verdict"], "skipped");
}

TEST_F(Training, AProgramThatFailsIsCrashed) {
  add("exits", "regular", "  --exit: 3\n");
  add("killed", "regular", "  --signal: 9\n");
  add("refused", "regular", "  --refuse: true\n");
  add("hangs", "regular", "  --hang: true\n", "ASSAY: {timeout: 0.2s}\n");
  add("allowed", "regular", "  --exit: 3\n", "TEST_EVALUATION: xpass\n");
  add("fine", "regular", "", "TEST_EVALUATION: xpass\n");
  run();
  EXPECT_EQ(verdict("exits"), "CRASHED");
  EXPECT_THAT(reason("exits"), HasSubstr("run 1: the program of the test ended badly"));
  EXPECT_EQ(compat("exits")["verdict"], "failed");
  EXPECT_EQ(verdict("killed"), "CRASHED");
  EXPECT_EQ(verdict("refused"), "INFRA");
  EXPECT_EQ(verdict("hangs"), "CRASHED");
  EXPECT_THAT(reason("hangs"), HasSubstr("time limit"));
  EXPECT_EQ(verdict("allowed"), "XFAIL");
  EXPECT_EQ(compat("allowed")["verdict"], "passed");
  EXPECT_EQ(verdict("fine"), "IDENTICAL") << "may fail, need not";
}

TEST_F(Training, XpassDoesNotAllowOptionsThatTheEngineRefuses) {
  add("refused", "regular", "", "TEST_EVALUATION: xpass\n");
  options_.engine_options = R"({"refuse_to_open": true})";
  run();
  EXPECT_EQ(verdict("refused"), "INVALID") << "nothing ran";
  EXPECT_THAT(reason("refused"), HasSubstr("told to refuse"));
}

TEST_F(Training, RestartsOfTheLauncherAreReported) {
  add("restarted", "regular", "  --restarts: 2\n", "LAUNCHER: ft_launcher\n");
  run();
  EXPECT_EQ(verdict("restarted"), "IDENTICAL");
  EXPECT_EQ(job("restarted", 1).launcher, "ft_launcher");
  EXPECT_EQ(job("restarted", 1).max_restarts, 3);
  ASSERT_EQ(outcome("restarted").verdict.environment.size(), 1u);
  EXPECT_THAT(outcome("restarted").verdict.environment[0], HasSubstr("ft_launcher restarted the program 2 times"));
}

TEST_F(Training, RepeatsAreRunAndComparedWithEachOther) {
  add("stable", "regular", "", "ENV_VARS:\n  N_REPEAT: 2\n");
  add("noisy", "regular", "  --noise: 0.01\n", "ENV_VARS:\n  N_REPEAT: 2\n");
  run();
  EXPECT_EQ(verdict("stable"), "IDENTICAL") << reason("stable");
  EXPECT_EQ(outcome("stable").repeats.size(), 2u);
  EXPECT_TRUE(fs::exists(folder_of("stable") / "repeat_2/actual.json"));
  EXPECT_EQ(verdict("noisy"), "FLAKY") << reason("noisy");
}

TEST_F(Training, OnceThatIsWrittenOrForcedCountsMoreThanTheRecipe) {
  add("once", "regular", "", "ENV_VARS:\n  N_REPEAT: 1\n");
  add("light", "regular", "", "ENV_VARS:\n  ENABLE_LIGHTWEIGHT_MODE: true\n");
  add("skips", "regular", "", "ENV_VARS:\n  SKIP_PYTEST: 1\n");
  add("says_nothing", "regular");
  CaseSettings recipe;
  recipe.repeat = 2;
  options_.settings.assign(4, recipe);
  run();
  for (const char* name : {"once", "light", "skips"}) EXPECT_TRUE(outcome(name).repeats.empty()) << name;
  EXPECT_EQ(outcome("says_nothing").repeats.size(), 2u);
  options_.variables["N_REPEAT"] = "1";
  run();
  EXPECT_TRUE(outcome("says_nothing").repeats.empty()) << "--set N_REPEAT=1";
  options_.repeat = 3;
  run();
  for (const char* name : {"once", "light", "skips", "says_nothing"})
    EXPECT_EQ(outcome(name).repeats.size(), 3u) << name;
}

TEST_F(Training, ReinforcementLearningIsComparedInLightweightModeToo) {
  options_.variables["CHECKPOINT_LOAD_PATH"] = (dir_ / "frozen").string();
  fs::create_directories(dir_ / "frozen/iter_0000001");
  options_.variables["ENABLE_LIGHTWEIGHT_MODE"] = "true";
  const fs::path folder = add("rl", "frozen-start", "  --exit-interval: 20\n", "METRICS: [lm-loss]\n");
  std::string text;
  std::getline(std::ifstream(folder / "model_config.yaml"), text, '\0');
  text.replace(text.find("pretraining"), std::string("pretraining").size(), "rl");
  std::ofstream(folder / "model_config.yaml") << text;
  run();
  EXPECT_NE(verdict("rl"), "SKIPPED") << reason("rl");
  EXPECT_NE(compat("rl")["verdict"], "skipped") << compat("rl");
  EXPECT_NE(verdict("rl"), "INFRA") << reason("rl");
}

TEST_F(Training, NothingIsComparedInLightweightModeAndSoItIsNoPass) {
  add("light", "ckpt-resume", "", "ENV_VARS:\n  ENABLE_LIGHTWEIGHT_MODE: true\n  N_REPEAT: 3\n");
  add("light_failing", "regular", "  --exit: 1\n", "ENV_VARS:\n  ENABLE_LIGHTWEIGHT_MODE: true\n");
  add("silent", "regular", "", "ENV_VARS:\n  SKIP_PYTEST: 1\n");
  run();
  EXPECT_EQ(verdict("light"), "SKIPPED");
  EXPECT_THAT(reason("light"), HasSubstr("ENABLE_LIGHTWEIGHT_MODE: the training ended well, nothing was compared"));
  EXPECT_TRUE(outcome("light").repeats.empty());
  EXPECT_TRUE(fs::exists(folder_of("light") / "checkpoints/iter_0000002"));
  EXPECT_FALSE(fs::exists(folder_of("light") / "checkpoints/iter_0000006"));
  EXPECT_EQ(verdict("light_failing"), "CRASHED");
  EXPECT_EQ(verdict("silent"), "SKIPPED");
  options_.variables["RECORD_CHECKPOINTS"] = "true";
  add("light_failing", "regular", "  --exit: 1\n");
  run();
  EXPECT_EQ(verdict("light_failing"), "CRASHED") << "theirs hides it";
}

TEST_F(Training, AReleaseIsComparedOnceItsLastStepIsSaved) {
  add("window", "release", "  --exit-interval: 40\n");
  add("done", "release", "  --exit-interval: 20\n");
  run();
  EXPECT_THAT(reason("window"), HasSubstr("TEST_TYPE release loads a checkpoint: give it with"));
  options_.variables["CHECKPOINT_LOAD_PATH"] = (dir_ / "start").string();
  run();
  EXPECT_THAT(reason("window"), HasSubstr("start holds no checkpoint to load, it is not there"));
  fs::create_directories(dir_ / "start");
  run();
  EXPECT_EQ(verdict("window"), "SKIPPED");
  EXPECT_THAT(reason("window"), HasSubstr("step 20 of 40 is saved"));
  EXPECT_EQ(verdict("done"), "INVALID") << "steps 1, 5, 10 ... of a golden with all: " << reason("done");
}

TEST_F(Training, AReleaseIsJudgedByTheStepsOfAllItsWindows) {
  const fs::path logged = dir_ / "tb/1/logs";
  options_.variables["CHECKPOINT_LOAD_PATH"] = options_.variables["CHECKPOINT_SAVE_PATH"] = (dir_ / "save").string();
  options_.variables["TENSORBOARD_PATH"] = (dir_ / "tb/logs").string();
  const auto window = [&](const std::string& more) {
    const fs::path folder = add("long", "release", "  --train-iters: 40\n  --exit-interval: 40\n" + more);
    train::MetricSet golden;
    train::Metric loss{"lm loss", 1, 40, 5, {{1, train::round5(9.99F), false}}};
    for (int step = 5; step <= 40; step += 5)
      loss.values.push_back({step, train::round5(static_cast<float>(10 - step / 100.0)), false});
    golden.metrics.push_back(loss);
    EXPECT_TRUE(train::write_metrics((folder / "golden_values_dev_here.json").string(), golden).ok());
    run();
  };
  fs::create_directories(logged);
  std::ofstream(logged / "events.out.tfevents.0") << "of another training";
  window("  --stop-at: 25\n");
  EXPECT_EQ(verdict("long"), "SKIPPED") << reason("long");
  EXPECT_TRUE(fs::exists(dir_ / "tb/1/logs.before_1")) << "the first window begins with an empty folder";
  window("");
  EXPECT_EQ(verdict("long"), "IDENTICAL") << reason("long");
  const Result<train::MetricSet> actual = train::read_metrics(outcome("long").actual);
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  EXPECT_EQ(actual->find("lm loss")->values.size(), 9u);
  window("");  // all is saved: nothing goes on
  EXPECT_TRUE(fs::exists(dir_ / "tb/1/logs.before_2"));
}

TEST_F(Training, AReleaseThatSavesNothingIsInvalidWhateverIsSavedAlready) {
  options_.variables["CHECKPOINT_LOAD_PATH"] = options_.variables["CHECKPOINT_SAVE_PATH"] = (dir_ / "save").string();
  add("window", "release", "  --exit-interval: 40\n");
  run();
  EXPECT_EQ(verdict("window"), "SKIPPED") << "the first window begins from nothing";
  run();  // saves step 20 again, as before
  EXPECT_EQ(verdict("window"), "INVALID");
  EXPECT_THAT(reason("window"), HasSubstr("release: the program saved nothing: "));
}

TEST_F(Training, ATypeThatLoadsNeedsACheckpoint) {
  add("start", "frozen-start");
  add("resume", "frozen-resume");
  add("regular", "regular");
  options_.variables.erase("CHECKPOINT_LOAD_PATH");
  run();
  for (const std::string name : {"start", "resume"}) {
    EXPECT_EQ(verdict(name), "INVALID");
    EXPECT_THAT(reason(name), HasSubstr("loads a checkpoint: give it with --set CHECKPOINT_LOAD_PATH=..."));
  }
  EXPECT_EQ(verdict("regular"), "IDENTICAL") << "begins from nothing";
  options_.variables["CHECKPOINT_LOAD_PATH"] = "";
  run();
  EXPECT_EQ(verdict("start"), "INVALID");
  options_.variables["CHECKPOINT_LOAD_PATH"] = (dir_ / "none").string();
  run();
  EXPECT_EQ(verdict("start"), "INVALID");
  EXPECT_THAT(reason("start"), HasSubstr("none holds no checkpoint to load, it is not there"));
  fs::create_directories(dir_ / "none");
  run();
  EXPECT_THAT(reason("start"), HasSubstr("none holds no checkpoint to load, it is empty"));
}

TEST_F(Training, ResultsGoOverNoGoldenAndThoseOfAnEarlierRunAreMovedAside) {
  options_.results = add("case", "regular", "  --drift-at: 7\n") / "golden_values_dev_here.json";
  run();
  EXPECT_EQ(verdict("case"), "INVALID");
  EXPECT_THAT(reason("case"), HasSubstr("is a golden of the case, which results would replace"));
  options_.results = dir_ / "values.json";
  run();
  EXPECT_EQ(verdict("case"), "DRIFT");
  EXPECT_TRUE(fs::exists(options_.results));
  add("case", "regular", "  --exit: 3\n");
  run();
  EXPECT_EQ(verdict("case"), "CRASHED");
  EXPECT_FALSE(fs::exists(options_.results));
  EXPECT_TRUE(fs::exists(dir_ / "values.json.before_1"));
}

TEST_F(Training, ScriptsRunWithPermissionAlone) {
  add("scripted", "regular", "", "BEFORE_SCRIPT: echo before\nAFTER_SCRIPT: EXIT_CODE=0\n");
  add("preloading", "regular", "", "ENV_VARS:\n  LD_PRELOAD: x.so\n");
  run();
  EXPECT_EQ(verdict("scripted"), "INVALID");
  EXPECT_THAT(reason("scripted"), HasSubstr("--allow-scripts"));
  EXPECT_EQ(verdict("preloading"), "INVALID");
  options_.allow_scripts = true;
  run();
  EXPECT_EQ(verdict("scripted"), "IDENTICAL") << reason("scripted");
  EXPECT_EQ(job("scripted", 1).before_script, "echo before");
  EXPECT_EQ(job("scripted", 1).after_script, "EXIT_CODE=0");
}

TEST_F(Training, WhatIsMissingIsSaid) {
  add("case", "regular", "  --data-path: ${DATA_PATH}\n");
  run();
  EXPECT_EQ(verdict("case"), "INVALID");
  EXPECT_THAT(reason("case"), HasSubstr("variable DATA_PATH is not set"));
  options_.variables.erase("TRAINING_SCRIPT_PATH");
  run();
  EXPECT_THAT(reason("case"), HasSubstr("--set TRAINING_SCRIPT_PATH"));
  options_.engine = "misbehaving";
  run();
  EXPECT_EQ(verdict("case"), "NOT_COMPARABLE");
  EXPECT_THAT(reason("case"), HasSubstr("needs an engine that can train"));
  options_.engine.clear();
  run();
  EXPECT_EQ(verdict("case"), "SKIPPED");
  EXPECT_THAT(reason("case"), HasSubstr("--engine process"));
}

TEST_F(Training, NothingOfAnEarlierRunIsTakenForThisOnes) {
  add("case", "regular");
  run();
  EXPECT_EQ(verdict("case"), "IDENTICAL");
  add("case", "regular", "  --stop-at: 1\n");
  run();
  EXPECT_EQ(verdict("case"), "INVALID");
}

}  // namespace
}  // namespace assay::run
