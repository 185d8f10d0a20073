// Governance as a user meets it: record, review, accept, calibrate, lint on real runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kName = "moe_10m_licences_fp32_b1";

class Govern : public testing::Test {
 protected:
  Govern() {
    fs::create_directories(folder_.path() / "moe");
    fs::copy(fs::path(ASSAY_SOURCE_DIR) / "testcases" / "moe" / kName, case_dir());
    golden_ = (case_dir() / "golden_values_dev_any.json").string();
    pending_ = (case_dir() / "golden_values_dev_cpu_x86_64.pending.json").string();
    new_golden_ = (case_dir() / "golden_values_dev_cpu_x86_64.json").string();
  }
  ~Govern() override { ::unsetenv("CI"); }
  fs::path case_dir() const { return folder_.path() / "moe" / kName; }
  // One token of request 0, behind the first blank line or before it, is altered by hand.
  void alter(size_t token) {
    json golden = json::parse(read_file(golden_));
    golden["0"]["generated_tokens"][token] = 7;
    write_file(golden_, golden.dump());
  }
  // Makes the case characteristic: a golden that a run may change.
  void make_characteristic() {
    std::string config = read_file(case_dir() / "model_config.yaml");
    write_file(case_dir() / "model_config.yaml", config.substr(0, config.find("ASSAY:")));
  }
  Output assay(std::vector<std::string> words) {
    const bool runs = words[0] == "record" || words[0] == "calibrate";
    const bool of_a_run = std::find(words.begin(), words.end(), "--run") != words.end();
    if (runs && !of_a_run) fs::remove_all(folder_.path() / "out");  // a run is not replaced
    if (runs) words.insert(words.end(), {"--output", folder_ / "out"});
    return run_program("assay", words);
  }
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> texts;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.is_regular_file()) texts[entry.path().string()] = read_file(entry.path());
    }
    return texts;
  }
  TemporaryFolder folder_;
  std::string golden_;
  std::string pending_;
  std::string new_golden_;
};

TEST_F(Govern, RecordAlterAcceptAndRunAgain) {
  EXPECT_THAT(assay({"record", case_dir()}).out, HasSubstr("nothing to record"));
  EXPECT_FALSE(fs::exists(pending_));
  make_characteristic();
  alter(5);
  const std::string before = read_file(golden_);
  const Output recorded = assay({"record", case_dir()});
  ASSERT_EQ(recorded.code, 0) << recorded.out << recorded.err;
  EXPECT_THAT(recorded.out, HasSubstr("request 0, from generated token 5"));
  EXPECT_EQ(read_file(golden_), before) << "never over the old one";
  ASSERT_TRUE(fs::exists(pending_));

  const Output listed = assay({"review", case_dir(), "--json"});
  const json items = json::parse(listed.out);
  ASSERT_EQ(items.size(), 1U) << listed.out;
  EXPECT_EQ(items[0]["proposal"], "wrong");
  EXPECT_EQ(items[0]["accept"], json({"generated_tokens"}));
  EXPECT_THAT(assay({"review", case_dir()}).out, HasSubstr("This is no terminal"));
  EXPECT_EQ(assay({"run", case_dir(), "--output", folder_ / "run"}).code, 1) << "a pending golden judges nothing";

  EXPECT_EQ(assay({"accept", case_dir(), "--metric", "generated_tokens"}).code, 2) << "no reason";
  EXPECT_EQ(assay({"accept", case_dir(), "--reason", "x"}).code, 2) << "no metric";
  EXPECT_EQ(assay({"accept", case_dir(), "--metric", "loss", "--reason", "x", "--who", "w"}).code, 1);
  const Output accepted =
      assay({"accept", case_dir(), "--metric", "generated_tokens", "--reason", "token 5 was altered", "--who", "Ada"});
  ASSERT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_FALSE(fs::exists(pending_));
  const json meta = json::parse(read_file(new_golden_))["assay"];
  EXPECT_EQ(meta["accepted"][0]["who"], "Ada");
  EXPECT_EQ(meta["accepted"][0]["why"], "token 5 was altered");
  for (const char* member : {"engine", "engine_build", "backend", "weights_sha256", "tokenizer_sha256", "dtype",
                             "device", "driver", "schedule", "run_id"}) {
    EXPECT_FALSE(meta["provenance"].value(member, "").empty()) << member;
  }
  EXPECT_EQ(assay({"run", case_dir(), "--output", folder_ / "second_run"}).code, 0);
  EXPECT_EQ(assay({"golden", "lint", case_dir(), "--platform", "cpu_x86_64", "--require-provenance"}).code, 0);
}

TEST_F(Govern, ThePendingGoldenTellsTheCommandWithoutItsSecrets) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"calibrate", case_dir(), "--repeat", "2", "--write"},
        std::vector<std::string>{"record", case_dir()},
        std::vector<std::string>{"record", case_dir(), "--run", folder_ / "out"}}) {
    if (words.size() == 2) {  // so that there is something to record
      make_characteristic();
      alter(5);
    }
    fs::remove(pending_);
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--set", "HUB_API_KEY=very-secret-word", "--set", "PLAIN=visible"});
    const Output output = assay(all);
    ASSERT_EQ(output.code, 0) << output.out << output.err;
    const std::string pending = read_file(pending_);
    EXPECT_THAT(pending, HasSubstr("assay " + words[0] + " "));
    EXPECT_THAT(pending, HasSubstr("HUB_API_KEY=***"));
    EXPECT_THAT(pending, HasSubstr("PLAIN=visible"));
    EXPECT_THAT(pending + output.out + output.err, Not(HasSubstr("very-secret-word")));
  }
}

TEST_F(Govern, AKnownCompletionIsNeverAcceptedFromAWrongText) {
  alter(5);  // so that there is something to record
  ASSERT_EQ(assay({"record", case_dir()}).code, 0);
  json pending = json::parse(read_file(pending_));
  std::string text = pending["0"]["generated_text"];
  pending["0"]["generated_text"] = text.replace(text.find("Public License"), 14, "Secret License");
  write_file(pending_, pending.dump());
  const std::string before = read_file(golden_);
  const Output refused = assay({"accept", case_dir(), "--all", "--reason", "it is what the engine says", "--who", "w"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("golden/licences/cc-by-sa-4.0.txt"));
  EXPECT_THAT(refused.err, HasSubstr("|Secret License"));
  EXPECT_EQ(read_file(golden_), before);
  EXPECT_FALSE(fs::exists(new_golden_));
}

TEST_F(Govern, ContinuousIntegrationWritesNothing) {
  make_characteristic();
  alter(5);
  ASSERT_EQ(assay({"record", case_dir()}).code, 0);
  std::filesystem::remove_all(folder_.path() / "out");  // of the run that recorded
  const auto before = files();
  for (const char* value : {"true", "1"}) {
    ::setenv("CI", value, 1);
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"record", case_dir()},
                                               {"review", case_dir()},
                                               {"accept", case_dir(), "--all", "--reason", "x"},
                                               {"reject", case_dir()},
                                               {"calibrate", case_dir(), "--write", "--repeat", "2"}}) {
      const Output refused = assay(words);
      EXPECT_EQ(refused.code, 2) << words[0];
      EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    }
    EXPECT_EQ(assay({"review", case_dir(), "--json"}).code, 0) << "reading is allowed";
  }
  EXPECT_EQ(files(), before);
}

TEST_F(Govern, ACaseThatIsNotThereIsABadCommandLineAndOneWithoutAPendingGoldenIsNone) {
  make_characteristic();
  fs::create_directories(folder_.path() / "nothing");
  for (const std::string& path : {folder_ / "NOPE", folder_ / "nothing"}) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"reject", path}, {"accept", path, "--all", "--reason", "x", "--who", "w"}}) {
      const Output refused = assay(words);
      EXPECT_EQ(refused.code, 2) << words[0] << " " << path;
      EXPECT_THAT(refused.err, HasSubstr(path));
      EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    }
  }
  EXPECT_EQ(assay({"reject", case_dir()}).code, 1) << "a refusal is an answer";
  EXPECT_EQ(assay({"accept", case_dir(), "--all", "--reason", "x", "--who", "w"}).code, 1);
}

TEST_F(Govern, ATreeThatCannotBeWrittenHasItsPendingGoldensElsewhere) {
  make_characteristic();
  alter(5);
  const std::string elsewhere = folder_ / "pending";
  ASSERT_EQ(assay({"record", case_dir(), "--pending-dir", elsewhere}).code, 0);
  EXPECT_FALSE(fs::exists(pending_));
  EXPECT_TRUE(fs::exists(fs::path(elsewhere) / "moe" / kName / fs::path(pending_).filename()));
  EXPECT_EQ(json::parse(assay({"review", folder_.path(), "--pending-dir", elsewhere, "--json"}).out).size(), 1U);
  const Output accepted = assay({"accept", case_dir(), "--metric", "generated_tokens", "--reason", "x", "--who", "w",
                                 "--pending-dir", elsewhere});
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_TRUE(fs::exists(new_golden_));
}

TEST_F(Govern, KilledWhileAcceptingTheGoldenIsTheOldOrTheNewOne) {
  make_characteristic();
  alter(5);
  ASSERT_EQ(assay({"record", case_dir(), "--platform", "any"}).code, 0);
  const std::string pending = case_dir() / "golden_values_dev_any.pending.json";
  const std::string old_golden = read_file(golden_);
  const std::string old_pending = read_file(pending);
  ASSERT_EQ(assay({"accept", pending, "--metric", "generated_tokens", "--reason", "x", "--who", "w"}).code, 0);
  const json new_requests = json::parse(read_file(golden_))["0"];
  for (int attempt = 0; attempt < 12; ++attempt) {
    write_file(golden_, old_golden);
    write_file(pending, old_pending);
    const std::string program = std::string(ASSAY_BINARY_DIR) + "/bin/assay";
    const pid_t child = fork();
    if (child == 0) {
      if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
      execl(program.c_str(), "assay", "accept", pending.c_str(), "--metric", "generated_tokens", "--reason", "x",
            "--who", "w", nullptr);
      _exit(127);
    }
    ::usleep(static_cast<useconds_t>(2000 + 4000 * attempt));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string seen = read_file(golden_);
    EXPECT_TRUE(seen == old_golden || json::parse(seen)["0"] == new_requests) << attempt;
  }
}

TEST_F(Govern, OnATerminalReviewAsksAndAccepts) {
  make_characteristic();
  alter(5);
  ASSERT_EQ(assay({"record", case_dir()}).code, 0);
  int terminal = -1;
  const std::string program = std::string(ASSAY_BINARY_DIR) + "/bin/assay";
  const std::string where = case_dir();
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(program.c_str(), "assay", "review", where.c_str(), "--who", "Ada", nullptr);
    _exit(127);
  }
  const std::string keys = "d\na\nlooked at on a terminal\n";
  ASSERT_EQ(::write(terminal, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  std::string shown;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof(buffer))) > 0;)
    shown.append(buffer, static_cast<size_t>(got));
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << shown;
  EXPECT_THAT(shown, HasSubstr("reason: "));
  EXPECT_THAT(shown, HasSubstr("1 accepted, 0 rejected"));
  EXPECT_THAT(read_file(new_golden_), HasSubstr("looked at on a terminal"));
}

TEST_F(Govern, CalibrationMeasuresBatchesAndLeavesTheGoldenAlone) {
  const std::string before = read_file(golden_);
  const Output measured = assay({"calibrate", case_dir(), "--repeat", "2", "--batch", "1,2,9", "--write"});
  ASSERT_EQ(measured.code, 0) << measured.out << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("batch 9 is left out"));
  EXPECT_THAT(measured.out, HasSubstr("smallest tolerance that would pass"));
  EXPECT_THAT(measured.out, HasSubstr("4 results, batch 1, batch 2"));
  EXPECT_EQ(read_file(golden_), before);
  EXPECT_EQ(json::parse(read_file(pending_))["assay"]["noise"]["metrics"]["logprobs"]["max"], 0.0)
      << "this engine says the same in every batch";
  ASSERT_EQ(assay({"accept", case_dir(), "--metric", "noise", "--reason", "measured", "--who", "w"}).code, 0);
  EXPECT_EQ(json::parse(read_file(new_golden_))["assay"]["noise"]["repeats"], 4);
  EXPECT_EQ(assay({"calibrate", folder_.path(), "--batch", "x"}).code, 2);
}

TEST_F(Govern, LintOfTheTreeHasNoErrors) {
  const Output lint = run_program("assay", {"golden", "lint", "testcases", "--json"});
  ASSERT_EQ(lint.code, 0) << lint.out;
  EXPECT_EQ(json::parse(lint.out)["errors"], 0);
  EXPECT_EQ(json::parse(lint.out)["prompts_not_resolved"], 0);
  EXPECT_EQ(run_program("assay", {"golden", "lint", folder_ / "out"}).code, 2) << "no such folder";
  fs::create_directories(folder_ / "out");
  EXPECT_EQ(run_program("assay", {"golden", "lint", folder_ / "out"}).code, 4);
}

}  // namespace
}  // namespace assay::tests
