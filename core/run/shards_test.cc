#include "core/run/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/run/durations.h"
#include "core/run/merge_checks.h"
#include "core/run/simulate.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TestCase make_case(const std::string& name, const std::string& checkpoint, int tokens = 30) {
  TestCase test;
  test.name = name;
  test.dir = "/nowhere/" + name;
  test.config = test.dir + "/model_config.yaml";
  test.mode = "inference";
  const auto add = [&test](const char* key, const std::string& text) {
    ModelArg argument;
    argument.key = key;
    argument.text = text;
    test.model_args.entries.push_back(argument);
  };
  add("--load", checkpoint);
  add("--hidden-size", "1024");
  add("--num-layers", "24");
  add("--prompts", "one prompt");
  add("--num-tokens-to-generate", std::to_string(tokens));
  return test;
}

RunOptions with_cases(size_t count, size_t models) {
  RunOptions options;
  for (size_t i = 0; i < count; ++i) {
    options.cases.push_back(make_case("case" + std::to_string(i), "${ROOT}/model" + std::to_string(i % models)));
  }
  return options;
}

std::vector<int> shards_of(RunOptions options, uint32_t count, const Durations& durations) {
  std::vector<int> shards(options.cases.size(), 0);
  for (uint32_t index = 1; index <= count; ++index) {
    options.shard = ShardOptions{.index = index, .count = count, .durations = durations};
    const ShardPlan plan = plan_shards(options, *Filter::parse(options.filter));
    for (size_t i = 0; i < shards.size(); ++i) {
      if (!plan.mine[i]) continue;
      EXPECT_EQ(shards[i], 0) << "case " << i << " is in two shards";
      shards[i] = static_cast<int>(index);
    }
  }
  return shards;
}

TEST(ParseShard, TakesPartsOfAWhole) {
  EXPECT_EQ(parse_shard("2/8")->index, 2U);
  EXPECT_EQ(parse_shard("8/8")->count, 8U);
}

TEST(ParseShard, AnythingElseIsNamed) {
  for (const char* text :
       {"", "3", "/", "1/", "/3", "a/b", "1/3x", " 1/3", "1/3/4", "-1/3", "1.0/3", "99999999999/3"}) {
    const auto parsed = parse_shard(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr("expected i/n"));
  }
  EXPECT_THAT(parse_shard("0/3").status().message(), HasSubstr("numbered from 1 to 3"));
  EXPECT_THAT(parse_shard("4/3").status().message(), HasSubstr("there is no shard 4 of 3"));
  EXPECT_THAT(parse_shard("1/0").status().message(), HasSubstr("expected 1 to"));
  EXPECT_THAT(parse_shard("1/4000000").status().message(), HasSubstr("expected 1 to"));
}

TEST(Shards, RandomCasesAndDurationsAreDividedExactlyAndEveryShardAgrees) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const RunOptions options = with_cases(random() % 60, 1 + random() % 6);
    Durations durations;
    for (const TestCase& test : options.cases) {
      if (random() % 4 > 0) {
        durations.cases[test.name] = {.seconds = 0.01 * static_cast<double>(1 + random() % 1000), .load_seconds = 2};
      }
    }
    const auto count = static_cast<uint32_t>(1 + random() % 9);
    for (const int shard : shards_of(options, count, durations)) EXPECT_GE(shard, 1) << "in no shard";
  }
}

TEST(Shards, DoNotDependOnTheMachineItsVariablesOrItsFolders) {
  const RunOptions here = with_cases(40, 3);
  RunOptions there = here;
  there.environment = {{"ROOT", "/elsewhere"}};
  there.variables = {{"ROOT", "/elsewhere"}};
  there.jobs = 16;
  for (TestCase& test : there.cases) test.dir = "/other/" + test.name;
  EXPECT_EQ(shards_of(here, 5, {}), shards_of(there, 5, {}));
}

TEST(Shards, CasesOfOneModelStayTogetherWhereThatIsEven) {
  const RunOptions options = with_cases(40, 4);
  const std::vector<int> shards = shards_of(options, 4, {});
  for (size_t i = 4; i < shards.size(); ++i) EXPECT_EQ(shards[i], shards[i - 4]);
}

TEST(Shards, SamplingAndPromptsDoNotSeparateModelsButCheckpointsAndBackendsDo) {
  RunOptions options;
  TestCase one = make_case("one", "a");
  TestCase two = make_case("two", "a", 500);
  EXPECT_EQ(load_key(one, options), load_key(two, options));
  EXPECT_NE(load_key(one, options), load_key(make_case("three", "b"), options));
  two.assay.backend = "cpu";
  EXPECT_NE(load_key(one, options), load_key(two, options));
  options.backend = "reference";
  EXPECT_EQ(load_key(one, options), load_key(two, options));
  one.env_vars.push_back({.name = "X", .value = "1", .place = {}});
  EXPECT_NE(load_key(one, options), load_key(two, options));
}

TEST(Shards, UnrecordedCasesAreEstimatedOnTheScaleOfRecordedOnes) {
  RunOptions options;
  options.cases = {make_case("short", "a", 9), make_case("long", "a", 99)};
  Durations durations;
  durations.cases["short"] = {.seconds = 3, .load_seconds = 0.5};
  const ShardWork work = shard_work(options, *Filter::parse(""), durations);
  EXPECT_EQ(work.work.pieces[0].time, 3'000'000);
  EXPECT_EQ(work.work.pieces[1].time, 30'000'000) << "100 tokens to 10";
  EXPECT_THAT(work.work.loads, ElementsAre(500'000));
  EXPECT_FALSE(work.units[1].measured);
}

TEST(Shards, ACaseThatWasSkippedTakesNoTimeAndLoadsNothing) {
  CaseOutcome skipped;
  skipped.name = "large";
  skipped.verdict.verdict = Verdict::kSkipped;
  CaseOutcome short_one;
  short_one.name = "short";
  short_one.verdict.verdict = Verdict::kIdentical;
  short_one.summary.seconds = 3;
  short_one.summary.load_seconds = 0.5;
  const Durations durations = durations_of({skipped, short_one});
  RunOptions options;
  options.cases = {make_case("large", "16b", 100'000), make_case("short", "a", 9)};
  const ShardWork work = shard_work(options, *Filter::parse(""), durations);
  EXPECT_LE(work.work.pieces[0].time, 1);
  EXPECT_EQ(work.work.pieces[1].time, 3'000'000);
  EXPECT_THAT(work.work.loads, ElementsAre(0, 500'000));
  EXPECT_TRUE(work.units[0].measured);
  options.cases.push_back(make_case("new", "16b", 9));
  EXPECT_GT(shard_work(options, *Filter::parse(""), durations).work.loads[0], 0) << "a new case may load it";
  EXPECT_THAT(durations_json({skipped}), HasSubstr("large"));
}

TEST(Shards, RepeatsCountAsOftenAsTheyAreRun) {
  RunOptions options;
  options.cases = {make_case("one", "a")};
  options.repeat = 6;
  Durations durations;
  durations.cases["one"] = {.seconds = 4, .load_seconds = 0, .repeats = 2};
  EXPECT_EQ(shard_work(options, *Filter::parse(""), durations).work.pieces[0].time, 12'000'000);
}

TEST(Shards, RelationsOfACaseStayTogetherAndCount) {
  RunOptions options;
  options.cases = {make_case("one", "a"), make_case("two", "a")};
  options.metamorphic = true;
  Durations durations;
  durations.cases["one@prefix_cache"] = {.seconds = 5, .load_seconds = 0};
  const ShardWork all = shard_work(options, *Filter::parse(""), durations);
  ASSERT_EQ(all.units.size(), 2U);
  EXPECT_GT(all.units[0].relations.size(), 1U);
  const ShardWork some = shard_work(options, *Filter::parse("*@prefix_cache"), durations);
  EXPECT_EQ(some.work.pieces[0].time, 5'000'000);
}

TEST(CommonCommand, LeavesOutWhatDiffersBetweenShards) {
  EXPECT_THAT(common_command({"assay", "run", "cases", "--shard", "1/8", "--output=x", "--repeat", "2", "--durations",
                              "d", "--strict"}),
              ElementsAre("assay", "run", "cases", "--repeat", "2", "--strict"));
}

class DurationFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("assay_durations_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  Result<Durations> read(const std::string& text) {
    std::ofstream(folder_ / "d") << text;
    return read_durations(folder_ / "d");
  }
  fs::path folder_;
};

TEST_F(DurationFiles, WhatIsWrittenIsRead) {
  CaseOutcome outcome;
  outcome.name = "a@b";
  outcome.verdict.verdict = Verdict::kDiverged;
  outcome.summary.seconds = 1.5;
  outcome.summary.load_seconds = 0.25;
  outcome.repeats.resize(3);
  CaseOutcome failed = outcome;
  failed.name = "machine";
  failed.verdict.verdict = Verdict::kInfra;
  const Result<Durations> durations = read(durations_json({outcome, failed}));
  ASSERT_TRUE(durations.ok()) << durations.status().message();
  ASSERT_EQ(durations->cases.size(), 1U);
  EXPECT_EQ(durations->cases.at("a@b").repeats, 3);
  EXPECT_EQ(durations->cases.at("a@b").load_seconds, 0.25);
}

TEST_F(DurationFiles, OfAJournalTheEndAfterAResumeCountsAndATornLineIsNone) {
  const std::string started = R"({"event":"run_started","t":1,"schema":1})";
  const std::string resumed =
      "\n"
      R"({"event":"run_resumed","t":2,"rerun":["a"]})";
  const auto line = [](double seconds) {
    return R"({"event":"case_finished","t":2,"case":"a","name":"a","verdict":{"verdict":"IDENTICAL","reason":"","golden":"","metrics":[]},"summary":{"seconds":)" +
           std::to_string(seconds) + "}}";
  };
  const Result<Durations> durations =
      read(started + "\n" + line(1) + resumed + "\n" + line(2) + "\n" + line(3).substr(0, 90));
  ASSERT_TRUE(durations.ok()) << durations.status().message();
  EXPECT_EQ(durations->cases.at("a").seconds, 2);
  const Result<Durations> begun_again = read(started + "\n" + line(1) + resumed + "\n");
  ASSERT_TRUE(begun_again.ok()) << begun_again.status().message();
  EXPECT_TRUE(begun_again->cases.empty()) << "its earlier end is as if it had never been";
}

TEST_F(DurationFiles, ADamagedJournalIsNamedWithItsLineAndInWordsOfOurOwn) {
  const std::string started = R"({"event":"run_started","t":1,"schema":1})";
  for (const auto& [text, part] : {std::pair<std::string, const char*>{started + "\nhallo\n", "d:2: not a JSON object"},
                                   {started + "\n{\"event\":\"case_finished\",\"case\":7}\n", "d:2: case_finished: "},
                                   {started + "\n{\"event\":\"case_finished\",\"case\":\"a\",\"verdict\":{}}\n", "d:2"},
                                   {R"({"event":"run_started","schema":7})"
                                    "\n",
                                    "schema 7"}}) {
    const Result<Durations> durations = read(text);
    ASSERT_FALSE(durations.ok()) << text;
    EXPECT_THAT(durations.status().message(), HasSubstr(part));
    EXPECT_EQ(durations.status().message().find("json.exception"), std::string::npos) << durations.status().message();
  }
  std::ofstream(folder_ / "results.jsonl") << "hallo\n";
  EXPECT_THAT(read_durations(folder_).status().message(), HasSubstr("results.jsonl:1: not a JSON object"));
  std::ofstream(folder_ / "results.jsonl") << "";
  EXPECT_THAT(read_durations(folder_).status().message(), HasSubstr("no run_started line"));
}

TEST_F(DurationFiles, JunkIsNamed) {
  for (const char* text :
       {"", "{}", "[1]",
        "\x7f"
        "ELF",
        R"({"schema":9,"cases":{}})", R"({"schema":1,"cases":{"a":{"seconds":-1}}})", R"({"schema":1,"cases":{"a":3}})",
        R"({"schema":1,"cases":{"a":{"seconds":1,"repeats":0}}})"}) {
    const Result<Durations> durations = read(text);
    ASSERT_FALSE(durations.ok()) << text;
    EXPECT_THAT(durations.status().message(), HasSubstr(folder_.string()));
    EXPECT_EQ(durations.status().message().find("json.exception"), std::string::npos) << durations.status().message();
  }
  EXPECT_EQ(read_durations(folder_ / "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(read_durations(folder_).status().code(), StatusCode::kNotFound);
}

Durations recorded(size_t cases, double seconds, double load) {
  Durations durations;
  for (size_t i = 0; i < cases; ++i) {
    durations.cases["case" + std::to_string(i)] = {.seconds = seconds, .load_seconds = load};
  }
  return durations;
}

TEST(Simulate, WithoutLossOrNoiseARunTakesItsShares) {
  SimulationOptions options{.start_seconds = 3, .noise = 0};
  const auto one = simulate(recorded(100, 2, 10), 1, options);
  ASSERT_TRUE(one.ok());
  EXPECT_NEAR(one->seconds, 213, 1e-6);
  EXPECT_NEAR(one->utilisation, 200.0 / 213, 1e-6);
  const auto ten = simulate(recorded(100, 2, 10), 10, options);
  EXPECT_NEAR(ten->seconds, 33, 1e-6);
  EXPECT_EQ(ten->loads, 10U);
  EXPECT_FALSE(simulate({}, 1, options).ok());
}

TEST(ShardFile, WhatCannotBeIsRefusedInOneLine) {
  const fs::path file = fs::temp_directory_path() / ("assay_shard_file_" + std::to_string(::getpid()) + ".json");
  const auto message = [&file](const std::string& count, const std::string& shard) {
    std::ofstream(file) << R"({"schema": 1, "partition": "p", "count": )" << count
                        << R"(, "cases": [{"name": "a", "path": "p/a", "model": "m", "relations": [""], "shard": )"
                        << shard << "}]}";
    const auto read = read_shard_file(file);
    return read ? std::string("read") : std::string(read.status().message());
  };
  EXPECT_EQ(message("2", "2"), "read");
  EXPECT_THAT(message("2", "0"), HasSubstr("case a lies in shard 0, expected 1 to 2"));
  EXPECT_THAT(message("2", "3"), HasSubstr("case a lies in shard 3, expected 1 to 2"));
  EXPECT_THAT(message("8e30", "1"), HasSubstr("8e+30 is no whole number"));
  EXPECT_THAT(message("2", "-1"), HasSubstr("-1 is no whole number"));
  fs::remove(file);
}

TEST(Simulate, IsTheSameForOneSeedAndAnotherForAnother) {
  SimulationOptions options{.cases = 500, .loss_rate = 5, .requeue = true};
  const auto first = simulate(recorded(50, 20, 5), 8, options);
  EXPECT_EQ(first->seconds, simulate(recorded(50, 20, 5), 8, options)->seconds);
  options.seed = 2;
  EXPECT_NE(first->seconds, simulate(recorded(50, 20, 5), 8, options)->seconds);
}

TEST(Simulate, LossesLeaveCasesUnfinishedUnlessTheyAreRequeued) {
  SimulationOptions options{.cases = 2000, .loss_rate = 2, .requeue = false, .noise = 0};
  const auto lost = simulate(recorded(50, 20, 5), 20, options);
  EXPECT_GT(lost->losses, 0U);
  EXPECT_GT(lost->unfinished, 0U);
  options.requeue = true;
  const auto again = simulate(recorded(50, 20, 5), 20, options);
  EXPECT_EQ(again->unfinished, 0U);
  EXPECT_GT(again->again, 0U);
  EXPECT_GT(again->seconds, again->predicted);
  EXPECT_NEAR(static_cast<double>(again->losses), 2.0 * 20 * again->seconds / 3600, 30) << "the rate asked for";
}

TEST(Simulate, ACaseLongerThanAnyWorkerLivesIsGivenUp) {
  const SimulationOptions options{.loss_rate = 3600, .requeue = true, .start_seconds = 0, .restart_seconds = 0};
  const auto run = simulate(recorded(1, 1000, 0), 1, options);
  EXPECT_EQ(run->unfinished, 1U);
  EXPECT_EQ(run->losses, 10U);
}

}  // namespace
}  // namespace assay::run
