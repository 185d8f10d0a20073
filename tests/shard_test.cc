// assay run --shard, assay merge and assay run --resume as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "tests/program.h"

extern char** environ;  // NOLINT: POSIX names it

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kConfig =
    "MODE: inference\nTEST_TYPE: frozen-start\nMODEL_ARGS:\n  --load: model\n  --tokenizer-type: NullTokenizer\n"
    "  --vocab-size: 100\n";

// A case that replays its golden, or a recorded result that differs from it.
void replayed_case(const fs::path& folder, const std::string& text, bool differs = false) {
  write_file(folder / "model_config.yaml",
             std::string(kConfig) + "METRICS: [generated_text]\nASSAY:\n  engine: replay\n");
  const auto result = [](const std::string& said) {
    return json{{"0", {{"input_prompt", "p"}, {"generated_text", said}}}}.dump();
  };
  write_file(folder / "golden_values_dev_any.json", result(text));
  if (differs) write_file(folder / "recorded.json", result("another " + text));
}

// A case of the test engine that takes some milliseconds.
void slow_case(const fs::path& folder, int milliseconds) {
  const std::string prompt = "slow " + std::to_string(milliseconds);
  write_file(folder / "prompts.jsonl", json{{"text", prompt}}.dump() + "\n");
  write_file(folder / "model_config.yaml", std::string(kConfig) +
                                               "  --prompt-file: " + (folder / "prompts.jsonl").string() +
                                               "\nMETRICS: [generated_text]\nASSAY:\n  engine: misbehaving\n");
  write_file(folder / "golden_values_dev_any.json",
             json{{"0", {{"input_prompt", prompt}, {"generated_text", std::to_string(milliseconds)}}}}.dump());
}

class Shards : public ::testing::Test {
 protected:
  Output assay(std::vector<std::string> words) { return run_program("assay", words, "", folder_.path()); }

  Output run(const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"run", "cases", "--output", output, "--quiet", "--plugin-path", plugins()};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  Output shard(int index, int count, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--shard", std::to_string(index) + "/" + std::to_string(count)});
    return run("s" + std::to_string(index), more);
  }
  Output merge(std::vector<std::string> runs, const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"merge", "--output", output, "--quiet"};
    words.insert(words.end(), runs.begin(), runs.end());
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  static std::string plugins() { return std::string(ASSAY_BINARY_DIR) + "/tests/plugins"; }

  // name -> verdict, from report.json.
  std::map<std::string, std::string> verdicts(const std::string& output) const {
    std::map<std::string, std::string> found;
    const json report = json::parse(read_file(folder_.path() / output / "report.json"), nullptr, false);
    if (!report.is_object()) return found;
    for (const json& one : report["cases"]) found[one["name"]] = one["verdict"];
    return found;
  }

  void add_cases(int count) {
    for (int i = 0; i < count; ++i) {
      replayed_case(folder_.path() / "cases" / ("m" + std::to_string(i % 3)) / ("case" + std::to_string(i)),
                    "text " + std::to_string(i), i % 7 == 3);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Shards, MergedTheyAreTheRunThatTheyDivide) {
  add_cases(25);
  EXPECT_EQ(run("whole").code, 1);
  std::vector<std::string> outputs;
  for (int i = 1; i <= 4; ++i) {
    const Output one = shard(i, 4, {"--durations", "whole"});
    EXPECT_LE(one.code, 1) << one.err;
    EXPECT_THAT(one.out, HasSubstr("shard " + std::to_string(i) + " of 4"));
    EXPECT_THAT(one.out, HasSubstr("predicted"));
    outputs.push_back("s" + std::to_string(i));
  }
  const Output merged = merge(outputs, "all");
  EXPECT_EQ(merged.code, 1) << merged.err;
  EXPECT_EQ(verdicts("all"), verdicts("whole"));
  const json whole = json::parse(read_file(folder_ / "whole/report.json"));
  const json all = json::parse(read_file(folder_ / "all/report.json"));
  for (size_t i = 0; i < whole["cases"].size(); ++i) {
    EXPECT_EQ(all["cases"][i]["name"], whole["cases"][i]["name"]) << "in the order of the run";
  }
  for (const char* file : {"junit.xml", "report.html", "results.jsonl", "durations.json", "cases/m0/case3/actual.json",
                           "cases/m0/case3/engine.log"}) {
    EXPECT_TRUE(fs::exists(folder_.path() / "all" / file)) << file;
  }

  EXPECT_EQ(assay({"report", "all", "--format", "json", "--output", folder_ / "again.json"}).code, 0);
  EXPECT_EQ(json::parse(read_file(folder_ / "again.json"))["cases"].size(), 25U);
  EXPECT_EQ(merge({"all"}, "twice", {"--copy"}).code, 1);
  EXPECT_EQ(verdicts("twice"), verdicts("whole"));
  EXPECT_FALSE(fs::is_symlink(folder_.path() / "twice/cases/m0/case3"));
  EXPECT_EQ(merge(outputs, "all").code, 1) << "an earlier merge may be replaced";
  EXPECT_EQ(assay({"run", "--resume", "all", "--quiet"}).code, 1);
  EXPECT_EQ(verdicts("all"), verdicts("whole"));
  EXPECT_EQ(merge(outputs, "all").code, 2) << "but not one that has been resumed";
  fs::remove_all(folder_.path() / "s1");
  EXPECT_EQ(shard(1, 4, {"--durations", "all/durations.json"}).code / 2, 0);
}

TEST_F(Shards, OneThatIsMissingIsNamedAndItsCasesAreInfraUntilTheyAreRun) {
  for (int i = 0; i < 12; ++i) replayed_case(folder_.path() / "cases" / ("case" + std::to_string(i)), "text");
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(shard(i, 3).code, 0);
  const Output gap = merge({"s1", "s3"}, "all");
  EXPECT_EQ(gap.code, 3) << gap.err;
  EXPECT_THAT(gap.out, HasSubstr("shard 2 of 3 is missing"));
  const auto found = verdicts("all");
  EXPECT_EQ(found.size(), 12U);
  const auto missing = std::count_if(found.begin(), found.end(), [](const auto& one) { return one.second == "INFRA"; });
  EXPECT_GE(missing, 3);

  EXPECT_EQ(merge({"all", "s2"}, "complete").code, 0) << "the missing shard, later";
  EXPECT_EQ(verdicts("complete").size(), 12U);

  const Output resumed = assay({"run", "--resume", "all", "--quiet"});
  EXPECT_EQ(resumed.code, 0) << resumed.out << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr(std::to_string(missing) + " of 12 cases are run again"));
  EXPECT_EQ(verdicts("all").size(), 12U);
}

TEST_F(Shards, OneWhoseJournalIsCutOffLosesNoCaseInSilence) {
  add_cases(9);
  for (int i = 1; i <= 3; ++i) shard(i, 3);
  const std::string journal = read_file(folder_ / "s2/results.jsonl");
  write_file(folder_ / "s2/results.jsonl", journal.substr(0, journal.find('\n') + 1));
  const Output merged = merge({"s1", "s2", "s3"}, "all");
  EXPECT_NE(merged.code, 0) << merged.out;
  const auto found = verdicts("all");
  ASSERT_EQ(found.size(), 9U);
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const auto& one) { return one.second == "INFRA"; }), 3);
  EXPECT_THAT(read_file(folder_ / "all/report.json"), HasSubstr("shard 2 of 3 ended before it wrote this case down"));
}

TEST_F(Shards, AMergeFilledInLaterNamesNoShardAsMissing) {
  add_cases(9);
  for (int i = 1; i <= 3; ++i) shard(i, 3);
  EXPECT_THAT(merge({"s1", "s3"}, "gap").out, HasSubstr("shard 2 of 3 is missing"));
  const Output filled = merge({"gap", "s2"}, "all");
  EXPECT_EQ(filled.out.find("is missing"), std::string::npos) << filled.out;
  EXPECT_EQ(filled.err.find("is missing"), std::string::npos) << filled.err;
  EXPECT_EQ(verdicts("all").size(), 9U);
}

TEST_F(Shards, ACaseInTheFolderOfAnotherIsMergedLikeAnyOther) {
  for (const char* name : {"p", "p/child", "p/child/grandchild", "p/repeat_2", "q/deep/case"}) {
    replayed_case(folder_.path() / "cases" / name, std::string("text of ") + name);
  }
  EXPECT_EQ(run("whole", {"--repeat", "2"}).code, 0);
  EXPECT_THAT(read_file(folder_ / "whole/cases/p/repeat_2/actual.json"), HasSubstr("\"text of p\""));
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{}, {"--copy"}}) {
    const std::string output = "all" + std::to_string(more.size());
    const Output merged = merge({"whole"}, output, more);
    EXPECT_EQ(merged.code, 0) << merged.err;
    EXPECT_EQ(verdicts(output), verdicts("whole"));
    for (const char* file : {"p", "p/repeat_2", "p/child", "p/child/repeat_2", "p/child/grandchild", "p/repeat_2~",
                             "p/repeat_2~/repeat_2", "q/deep/case"}) {
      const std::string actual = std::string("/cases/") + file + "/actual.json";
      EXPECT_EQ(read_file(folder_ / (output + actual)), read_file(folder_ / ("whole" + actual))) << file;
      EXPECT_NE(read_file(folder_ / (output + actual)), "") << file;
    }
  }
}

TEST_F(Shards, AMergeThatAloneHasResultsIsNotReplaced) {
  add_cases(3);
  for (int i = 1; i <= 3; ++i) shard(i, 3);
  EXPECT_EQ(merge({"s1", "s2"}, "all", {"--copy"}).code, 3);
  EXPECT_EQ(merge({"s1", "s3"}, "all").code, 3) << "s2 is still there";
  EXPECT_EQ(merge({"s1", "s2"}, "all", {"--copy"}).code, 3);
  fs::remove_all(folder_.path() / "s2");
  const std::string before = read_file(folder_ / "all/results.jsonl");
  const Output refused = merge({"s1", "s3"}, "all");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("alone has the results"));
  EXPECT_EQ(read_file(folder_ / "all/results.jsonl"), before);
  EXPECT_EQ(merge({"all", "s3"}, "complete").code, 0) << "what the line says to do";
}

TEST_F(Shards, ARunIsNotReplaced) {
  add_cases(2);
  EXPECT_EQ(run("out").code, 0);
  const std::string before = read_file(folder_ / "out/results.jsonl");
  const Output refused = run("out");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--resume"));
  EXPECT_EQ(read_file(folder_ / "out/results.jsonl"), before);
}

TEST_F(Shards, ACaseThatTheDivisionDoesNotKnowIsRefused) {
  add_cases(4);
  for (int i = 1; i <= 2; ++i) shard(i, 2);
  std::string journal = read_file(folder_ / "s1/results.jsonl");
  const std::string planned = R"({"event":"case_planned","t":1,"case":"intruder","name":"intruder"})";
  write_file(folder_ / "s1/results.jsonl", journal + planned + "\n");
  const Output unknown = merge({"s1", "s2"}, "all");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("intruder"));
  for (const char* id : {"../intruder", "/tmp/intruder", "m0/../../intruder"}) {
    const std::string line = json{{"event", "case_planned"}, {"t", 1}, {"case", id}, {"name", id}}.dump();
    write_file(folder_ / "s1/results.jsonl", journal + line + "\n");
    const Output refused = merge({"s1", "s2"}, "all", {"--copy"});
    EXPECT_EQ(refused.code, 2) << id;
    EXPECT_THAT(refused.err, HasSubstr("expected a path below cases/")) << id;
  }
  EXPECT_FALSE(fs::exists(folder_.path() / "all"));
}

TEST_F(Shards, OneWhoseCasesAreAllSkippedIsNoFailure) {
  write_file(
      folder_.path() / "cases/skipped/model_config.yaml",
      std::string(kConfig) + "METRICS: [generated_text]\nASSAY:\n  engine: replay\n  requires: [NOT_THERE_AT_ALL]\n");
  EXPECT_EQ(run("whole").code, 4);
  const Output only = shard(1, 1);
  EXPECT_EQ(only.code, 0) << only.out << only.err;
  EXPECT_EQ(verdicts("s1").at("skipped"), "SKIPPED");
  EXPECT_EQ(merge({"s1"}, "all").code, 4) << "of the whole run it says something";
}

TEST_F(Shards, AFolderOfSomebodyElseIsNotEmptied) {
  add_cases(3);
  shard(1, 1);
  const Output refused = merge({"s1"}, ".");  // holds the cases themselves
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("choose a new folder"));
  EXPECT_TRUE(fs::exists(folder_.path() / "cases/m0/case0/model_config.yaml"));
}

TEST_F(Shards, WhatDoesNotBelongTogetherIsRefused) {
  add_cases(12);
  for (int i = 1; i <= 2; ++i) shard(i, 2);
  const auto refused = [&](const Output& output, const char* why) {
    EXPECT_EQ(output.code, 2) << output.out;
    EXPECT_THAT(output.err, HasSubstr(why));
    EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
  };
  refused(merge({"s1", "s1"}, "m"), "given twice");
  fs::copy(folder_.path() / "s1", folder_.path() / "copy", fs::copy_options::recursive);
  refused(merge({"s1", "copy", "s2"}, "m"), "shard 1 of 2 is there twice");
  EXPECT_EQ(merge({"s1", "copy", "s2"}, "m", {"--allow-duplicates"}).code, 1);
  refused(merge({"s1", "s2"}, "s1"), "one of the runs");
  refused(merge({"s1", "none"}, "m"), "no such folder");
  refused(merge({}, "m"), "no RUN given");
  run("other", {"--strict"});
  refused(merge({"s1", "s2"}, "other"), "holds another run");
  refused(merge({"s1", "other"}, "m2"), "strict: false in ");
  run("engine", {"--engine", "replay"});
  refused(merge({"s1", "engine"}, "m2"), "engine: \"\" in ");
  EXPECT_FALSE(fs::exists(folder_.path() / "m2"));
  run("same");
  refused(merge({"s1", "same"}, "m2"), "there twice");

  run("of3", {"--shard", "2/3"});
  refused(merge({"s1", "of3"}, "m2"), "different divisions");
  replayed_case(folder_.path() / "cases/m0/case0", "another golden");
  fs::remove_all(folder_.path() / "s2");
  shard(2, 2);
  refused(merge({"s1", "s2"}, "m2"), "different cases");
}

TEST_F(Shards, BadPartsAreRefused) {
  add_cases(3);
  for (const char* part : {"0/3", "4/3", "a/3", "3", "1/0", "1/3/5"}) {
    const Output output = run("out", {"--shard", part});
    EXPECT_EQ(output.code, 2) << part;
    EXPECT_THAT(output.err, HasSubstr("--shard"));
  }
  EXPECT_EQ(run("out", {"--durations", "x"}).code, 2);
  EXPECT_EQ(run("out", {"--shard", "1/2", "--durations", "none"}).code, 2);
  EXPECT_EQ(run("out", {"--rerun", "failed"}).code, 2);
  EXPECT_FALSE(fs::exists(folder_.path() / "out"));
  EXPECT_EQ(shard(4, 5).code, 0) << "a shard without cases is no failure";
}

TEST_F(Shards, AResumedRunIsTheRunItWas) {
  add_cases(6);
  run("out", {"--repeat", "2"});
  const auto before = verdicts("out");
  const auto refused = [&](std::vector<std::string> words, const char* why) {
    words.insert(words.begin(), {"run", "--resume", "out"});
    const Output output = assay(words);
    EXPECT_EQ(output.code, 2) << why;
    EXPECT_THAT(output.err, HasSubstr(why));
  };
  refused({"--repeat", "3"}, "repeat: recorded 2, now 3");
  refused({"--engine", "faulty"}, "engine: recorded \"\", now \"faulty\"");
  refused({"--output", "x"}, "its own folder");
  refused({"--shard", "1/2"}, "recorded none, now 1/2");
  refused({"--durations", "out"}, "cannot be given");
  refused({"elsewhere"}, "other paths");
  refused({"--rerun", "sometimes"}, "expected verdicts");
  EXPECT_EQ(assay({"run", "--resume", "none"}).code, 2);
  const Output again = run_program("assay", {"run", "--resume", folder_ / "out", "--rerun", "failed", "--jobs", "2"});
  EXPECT_EQ(again.code, 1) << "from another folder" << again.err;
  EXPECT_THAT(again.out, HasSubstr("1 of 6 cases are run again (1 DIVERGED)"));
  EXPECT_EQ(verdicts("out"), before);
}

TEST_F(Shards, AJournalWithoutAWholeFirstLineCannotBeResumedAndSaysWhy) {
  add_cases(2);
  run("out");
  const std::string journal = read_file(folder_ / "out/results.jsonl");
  const auto refused = [&](const std::string& text, const char* why) {
    write_file(folder_ / "out/results.jsonl", text);
    const Output output = assay({"run", "--resume", "out"});
    EXPECT_EQ(output.code, 2) << output.out;
    EXPECT_THAT(output.err, HasSubstr(why));
    EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
    EXPECT_EQ(read_file(folder_ / "out/results.jsonl"), text);
  };
  refused("", "is empty: the run ended before");
  refused(journal.substr(0, 40), "is cut off in its first line");
  refused("hallo\n", "results.jsonl:1: no run_started line");
  refused("{\"event\":\"run_started\",\"schema\":\"x\"}\n", "results.jsonl:1: run_started: ");
  refused("{\"event\":\"run_started\",\"schema\":1,\"command\":[\"assay\",\"record\"]}\n", "made by 'assay record'");
  write_file(folder_ / "out/results.jsonl", journal.substr(0, journal.find('\n') + 20));
  EXPECT_EQ(assay({"run", "--resume", "out"}).code, 0) << "a torn line behind it costs nothing";
  EXPECT_EQ(verdicts("out").size(), 2U);
}

TEST_F(Shards, SecretsAreNotInTheJournalAndHaveToBeGivenAgain) {
  add_cases(2);
  EXPECT_EQ(run("out", {"--set", "MY_API_KEY=sesame-open", "--set", "OTHER=1"}).code, 0);
  EXPECT_EQ(read_file(folder_ / "out/results.jsonl").find("sesame-open"), std::string::npos);
  const Output without = assay({"run", "--resume", "out"});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("MY_API_KEY"));
  EXPECT_EQ(assay({"run", "--resume", "out", "--set", "MY_API_KEY=sesame-open"}).code, 0);
  EXPECT_EQ(assay({"run", "--resume", "out", "--set", "MY_API_KEY=sesame-open", "--set", "OTHER=2"}).code, 2);
}

// A run of its own process group that is killed with its runner alone: the workers have to notice by themselves.
class Killed {
 public:
  Killed(const fs::path& folder, std::vector<std::string> words) {
    words.insert(words.begin(), std::string(ASSAY_BINARY_DIR) + "/bin/assay");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
    EXPECT_EQ(posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  // Kills it once `file` has so many bytes. False where it ended by itself before that was seen.
  bool kill_at(const fs::path& file, std::uintmax_t bytes) {
    const auto size = [&] {
      std::error_code error;
      const std::uintmax_t seen = fs::file_size(file, error);
      return error ? 0 : seen;
    };
    while (size() < bytes) {
      if (::waitpid(pid_, nullptr, WNOHANG) != 0) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFSIGNALED(status);
  }

 private:
  pid_t pid_ = 0;
};

TEST_F(Shards, KilledAtRandomMomentsResumedAndMergedTheyHaveTheVerdictsOfOneRun) {
  constexpr int kShards = 8;
  for (int i = 0; i < 48; ++i) {
    const fs::path folder = folder_.path() / "cases" / ("case" + std::to_string(i));
    if (i % 2 == 0) {
      slow_case(folder, 5 + i);
    } else {
      replayed_case(folder, "text", i % 5 == 0);
    }
  }
  EXPECT_EQ(run("whole", {"--jobs", "2"}).code, 1);
  EXPECT_LE(shard(1, kShards).code, 1);
  std::vector<std::string> outputs = {"s1"};
  // Moments are lengths of the journal, which do not hang on how fast the machine is.
  const auto journal = [&](const std::string& output) { return folder_.path() / output / "results.jsonl"; };
  const std::uintmax_t length = fs::file_size(journal("s1"));
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto moment = [&] { return 1 + random() % (length / 2); };  // well before the end
  int killed = 0;
  for (int i = 2; i <= kShards; ++i) {
    const std::string output = outputs.emplace_back("s" + std::to_string(i));
    Killed first(folder_.path(), {"run", "cases", "--quiet", "--plugin-path", plugins(), "--output", output, "--shard",
                                  std::to_string(i) + "/" + std::to_string(kShards)});
    if (!first.kill_at(journal(output), moment())) continue;
    ++killed;
    Killed second(folder_.path(), {"run", "--resume", output, "--quiet"});
    if (!second.kill_at(journal(output), fs::file_size(journal(output)) + moment())) continue;
    EXPECT_LE(assay({"run", "--resume", output, "--quiet"}).code, 1);
  }
  EXPECT_GT(killed, 0);
  const Output merged = merge(outputs, "all");
  EXPECT_EQ(merged.code, 1) << merged.out << merged.err;
  EXPECT_EQ(verdicts("all"), verdicts("whole"));
}

TEST_F(Shards, ASecondWriterOfAFolderIsRefused) {
  slow_case(folder_.path() / "cases/slow", 600'000);  // it is killed
  replayed_case(folder_.path() / "cases/fast", "text");
  Killed first(folder_.path(), {"run", "cases", "--quiet", "--plugin-path", plugins(), "--output", "out"});
  for (int i = 0; i < 6000 && read_file(folder_.path() / "out/.lock").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const Output& second : {run("out"), assay({"run", "--resume", "out"}), merge({"out"}, "m")}) {
    EXPECT_EQ(second.code, 2) << second.out;
    EXPECT_THAT(second.err, testing::AnyOf(HasSubstr("in use by process"), HasSubstr("still going on"),
                                           HasSubstr("no results.jsonl")));
  }
  first.kill();
  const Output merged = merge({"out"}, "m");
  EXPECT_EQ(merged.code % 2, 1) << "killed: CRASHED or INFRA" << merged.err;
}

TEST_F(Shards, ASimulationOfARunIsPrinted) {
  add_cases(10);
  run("out");
  const Output table =
      assay({"simulate", "out", "--workers", "1,4", "--cases", "1000", "--loss-rate", "0.1", "--requeue"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 3);
  const Output lines = assay({"simulate", "out", "--workers", "1", "--json"});
  EXPECT_EQ(json::parse(lines.out)["workers"], 1);
  for (const char* bad : {"0", "x", "", "1,,2", "100001"}) {
    EXPECT_EQ(assay({"simulate", "out", "--workers", bad}).code, 2) << bad;
  }
  EXPECT_EQ(assay({"simulate", "none"}).code, 2);
  EXPECT_EQ(assay({"simulate"}).code, 2);
  EXPECT_EQ(assay({"simulate", "out", "--loss-rate", "-1"}).code, 2);
  EXPECT_EQ(assay({"simulate", "out", "--noise", "nan"}).code, 2);
}

}  // namespace
}  // namespace assay::tests
