// What every command says to a bad command line, to files that are none, and to an output that takes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The commands of `assay --help`, those with commands of their own taken apart.
std::vector<std::vector<std::string>> all_commands() {
  std::vector<std::vector<std::string>> commands;
  const std::string help = run_program("assay", {"--help"}).out;
  const std::regex line("\n  assay (\\S+)");
  for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end; ++at) {
    const std::string name = (*at)[1];
    if (name == "recipe") {
      commands.insert(commands.end(), {{"recipe", "list"}, {"recipe", "run"}});
    } else if (name == "plugin") {
      commands.insert(commands.end(),
                      {{"plugin", "list"}, {"plugin", "doctor"}, {"plugin", "new"}, {"plugin", "test"}});
    } else if (name == "golden") {
      commands.push_back({"golden", "lint"});
    } else {
      commands.push_back({name});
    }
  }
  return commands;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_one_line(const Output& output, const std::string& what) {
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << what << ":\n" << output.err;
  EXPECT_TRUE(output.err.starts_with("assay: ")) << what << ":\n" << output.err;
  for (const char* never : {"json.exception", "internal error", "terminate called", "basic_string", "boost"}) {
    EXPECT_EQ(output.err.find(never), std::string::npos) << what << ":\n" << output.err;
  }
}

TEST(Usage, EveryCommandRefusesUnknownOptionsAndOptionsWithoutTheirValueInOneLine) {
  const auto commands = all_commands();
  ASSERT_GE(commands.size(), 24U);
  for (const auto& command : commands) {
    const Output option = run_program("assay", with(command, {"--no-such-option"}));
    EXPECT_EQ(option.code, 2) << joined(command);
    EXPECT_THAT(option.err, HasSubstr("--no-such-option"));
    EXPECT_THAT(option.err, HasSubstr("usage: assay " + command[0]));
    expect_one_line(option, joined(command));
    const Output near = run_program("assay", with(command, {"--hlep"}));
    EXPECT_EQ(near.code, 2) << joined(command);
    EXPECT_THAT(near.err, HasSubstr("did you mean '--help'?")) << joined(command);
    const Output odd = run_program("assay", with(command, {"--x\ny\x1b[31m"}));
    EXPECT_EQ(odd.code, 2) << joined(command);
    expect_one_line(odd, joined(command));
  }
}

TEST(Usage, CommandsThatNeedWordsSaySoInOneLine) {
  for (const auto& command : all_commands()) {
    static const std::set<std::string> kNeedNone = {"run",         "list",         "review", "doctor",
                                                    "self-test",   "golden lint",  "record", "calibrate",
                                                    "plugin list", "plugin doctor"};
    if (kNeedNone.count(joined(command)) > 0) continue;
    const Output none = run_program("assay", command);
    EXPECT_EQ(none.code, 2) << joined(command);
    expect_one_line(none, joined(command));
  }
  for (const char* group : {"recipe", "plugin", "golden"}) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{group}, {group, "badword"}}) {
      const Output refused = run_program("assay", words);
      EXPECT_EQ(refused.code, 2) << joined(words);
      expect_one_line(refused, joined(words));
    }
  }
}

TEST(Usage, WordsThatHaveNoPlaceAreNamed) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"doctor", "badword"},
           {"plugin", "doctor", "badword"},
           {"plugin", "list", "badword"},
           {"plugin", "badword"},
           {"self-test", "badword"},
           {"tokenize", "--tokenizer-type", "NullTokenizer", "--vocab-size", "9", "badword"},
           {"recipe", "badword"},
           {"golden", "badword"},
           {"ci", "badword"},
           {"bench", "badword"},
           {"badword"}}) {
    const Output refused = run_program("assay", words);
    EXPECT_EQ(refused.code, 2) << joined(words) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr("badword"));
    expect_one_line(refused, joined(words));
  }
  EXPECT_THAT(run_program("assay", {"lsit"}).err, HasSubstr("did you mean 'list'?"));
}

// An installed plugin of the name would be taken in the place of the one that was meant.
TEST(Usage, FoldersOfPluginsThatCannotBeReadAreRefusedByEveryCommandButTheDoctors) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "p\xff");
  size_t refusing = 0;
  for (std::vector<std::string> command : all_commands()) {
    if (run_program("assay", with(command, {"--help"})).out.find("--plugin-path") == std::string::npos) continue;
    if (command.back() == "compare") command = with(command, {"--config", "any.yaml"});  // else that is what is missing
    const Output output = run_program("assay", with(command, {"--plugin-path", folder / "typo"}));
    if (command.back() == "doctor") {
      EXPECT_EQ(output.code, 1) << output.out << output.err;
      EXPECT_THAT(output.out, HasSubstr(folder / "typo"));
      EXPECT_THAT(output.out, HasSubstr("cannot be read: No such file"));
      continue;
    }
    EXPECT_EQ(output.code, 2) << joined(command) << output.out;
    EXPECT_THAT(output.err, HasSubstr("--plugin-path " + (folder / "typo") + ": the folder cannot be read: No such"));
    expect_one_line(output, joined(command));
    const Output unnamed = run_program("assay", with(command, {"--plugin-path", folder / "p\xff"}));
    EXPECT_EQ(unnamed.code, 2) << joined(command) << unnamed.out;
    EXPECT_THAT(unnamed.err, HasSubstr("p\\xff: the name is no UTF-8"));
    expect_one_line(unnamed, joined(command));
    ++refusing;
  }
  EXPECT_GT(refusing, 8U);
}

TEST(Usage, NumbersBelowWhatTheyMeanAreRefused) {
  const TemporaryFolder folder;
  write_file(folder / "durations.json", R"({"schema":1,"cases":{"a":{"seconds":1}}})");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"simulate", folder / "durations.json", "--seed", "-1"},
           {"simulate", folder / "durations.json", "--cases", "-1"},
           {"simulate", folder / "durations.json", "--workers", "-1"},
           {"run", folder.path().string(), "--jobs", "-1"},
           {"run", folder.path().string(), "--repeat", "-1"},
           {"calibrate", "testcases/moe/moe_10m_licences_bf16_b1", "--batch", "-1"},
           {"self-test", "--jobs", "-1"},
           {"self-test", "--seeds", "-1"},
           {"bench", "decode", "testcases/moe/moe_10m_licences_bf16_b1", "--rounds", "-1"},
           {"bench", "decode", "testcases/moe/moe_10m_licences_bf16_b1", "--steps", "-1"},
           {"bench", "load", "testcases/moe/moe_10m_licences_bf16_b1", "--read-threads", "-1"},
           {"new", folder / "x", "--tokens", "-1"},
           {"tokenize", "--tokenizer-type", "NullTokenizer", "--vocab-size", "-1"},
           {"plugin", "test", "x.so", "--timeout", "-1"}}) {
    const Output refused = run_program("assay", words);
    EXPECT_EQ(refused.code, 2) << joined(words) << refused.out;
    expect_one_line(refused, joined(words));
  }
  EXPECT_EQ(run_program("assay", {"simulate", folder / "durations.json", "--seed", "0"}).code, 0);
}

// One use of a command, with the path that it is about in the middle.
struct Use {
  std::vector<std::string> before;
  std::vector<std::string> after = {};
  bool writes_folder = false;  // a folder that holds nothing is what it wants
};

std::vector<Use> uses(const TemporaryFolder& folder) {
  const std::string config = "testcases/moe/moe_10m_licences_bf16_b1/model_config.yaml";
  const std::string golden = "testcases/moe/moe_10m_licences_bf16_b1/golden_values_dev_any.json";
  return {
      {{"run"}, {"--output", folder / "out"}},
      {{"run", "testcases", "--filter", "nothing", "--output", folder / "out", "--shard", "1/2", "--durations"}},
      {{"run", "--resume"}},
      {{"run", "testcases", "--output", folder / "out", "--engine", "replay", "--filter", "nothing", "--recorded"}},
      {{"run", "testcases", "--output", folder / "out", "--launcher", "slurm", "--filter", "nothing", "--profile"}},
      {{"list"}},
      {{"show"}},
      {{"show", "--checkpoint"}},
      {{"compare"}, {golden, "--config", config}},
      {{"compare", golden}, {"--config", config}},
      {{"compare", golden, golden, "--config"}},
      {{"merge"}, {"--output", folder / "out"}},
      {{"simulate"}},
      {{"report"}},
      {{"record"}, {"--output", folder / "out", "--pending-dir", folder / "pending"}},
      {{"record", "testcases/moe/moe_10m_licences_bf16_b1", "--pending-dir", folder / "pending", "--run"}},
      {{"review"}},
      {{"accept"}, {"--all", "--reason", "r"}},
      {{"reject"}},
      {{"calibrate"}, {"--output", folder / "out"}},
      {{"golden", "lint"}},
      {{"recipe", "list"}},
      {{"recipe", "run"}, {"--output", folder / "out"}},
      {{"recipe", "run", "--resume"}},
      {{"plugin", "test"}},
      {{"bench", "load", "--checkpoint"}},
      {{"bench", "decode"}},
      {{"tokenize", "--tokenizer-type", "TikTokenizer", "--tokenizer-model"}},
      {{"new", folder / "made", "--prompt-file"}},
      {{"new", folder / "made", "--like"}},
      {{"new", folder / "made", "--checkpoint"}, {}, true},
  };
}

// Ends with a code of its own, in words that are meant for people; with code 2 or 3 that is one line.
void expect_refusal(const Output& output, const std::string& what) {
  EXPECT_GE(output.code, 1) << what << "\n" << output.out;
  EXPECT_LE(output.code, 4) << what << "\n" << output.err;
  EXPECT_FALSE((output.out + output.err).empty()) << what;
  for (const char* never : {"json.exception", "internal error", "terminate called", "basic_string"}) {
    EXPECT_EQ((output.out + output.err).find(never), std::string::npos) << what << ":\n" << output.out << output.err;
  }
  if (output.code == 2 || output.code == 3) expect_one_line(output, what);
}

class Paths : public ::testing::Test {
 protected:
  void refuse_everywhere(const std::string& path, const char* kind) {
    for (const Use& use : uses(folder_)) {
      if (use.writes_folder && fs::is_directory(path)) continue;
      const auto words = with(with(use.before, {path}), use.after);
      expect_refusal(run_program("assay", words), std::string(kind) + ": " + joined(words));
      EXPECT_FALSE(fs::exists(folder_ / "made")) << joined(words);
    }
  }

  const TemporaryFolder folder_;
};

TEST_F(Paths, ThatAreNotThere) {
  for (const Use& use : uses(folder_)) {
    const auto words = with(with(use.before, {folder_ / "NOPE"}), use.after);
    const Output output = run_program("assay", words);
    expect_refusal(output, joined(words));
    EXPECT_THAT(output.out + output.err, HasSubstr("NOPE")) << joined(words);
    if (use.before[0] != "compare" && use.before != std::vector<std::string>{"plugin", "test"}) {
      EXPECT_EQ(output.code, 2) << joined(words) << output.out;
    }
  }
}

TEST_F(Paths, OfFoldersThatHoldNothing) {
  fs::create_directories(folder_ / "empty");
  refuse_everywhere(folder_ / "empty", "an empty folder");
}

TEST_F(Paths, OfEmptyFiles) {
  write_file(folder_ / "empty.file", "");
  refuse_everywhere(folder_ / "empty.file", "an empty file");
}

TEST_F(Paths, OfBinaryFiles) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>((i * 7919 + i / 256) % 256);
  write_file(folder_ / "binary.file", bytes);
  refuse_everywhere(folder_ / "binary.file", "a binary file");
  write_file(folder_ / "run/results.jsonl", bytes);
  for (const char* command : {"report", "simulate", "merge"}) {
    std::vector<std::string> words = {command, folder_ / "run"};
    if (words[0] == "merge") words = with(words, {"--output", folder_ / "out"});
    expect_refusal(run_program("assay", words), joined(words));
  }
}

// As a user who may read nothing of it; root may read everything.
TEST_F(Paths, ThatMayNotBeRead) {
  const fs::path setpriv = find_executable("setpriv");
  const bool root = ::geteuid() == 0;
  if (root && setpriv.empty()) GTEST_SKIP() << "root may read everything, and there is no setpriv to be somebody else";
  write_file(folder_ / "secret/model_config.yaml", "MODE: inference\n");
  write_file(folder_ / "secret.file", "{}");
  fs::permissions(folder_.path(), fs::perms::all);
  fs::permissions(folder_ / "secret", fs::perms::none);
  fs::permissions(folder_ / "secret.file", fs::perms::none);
  const std::string program = std::string(ASSAY_BINARY_DIR) + "/bin/assay";
  const std::vector<std::string> somebody = {"--reuid=65534", "--regid=65534", "--clear-groups"};
  const std::vector<std::string> start = {"/bin/sh", "-c", "cd \"$1\" && exec \"$0\" --version", program,
                                          folder_.path().string()};
  if (root && run_file(setpriv, with(somebody, start)).code != 0) {
    GTEST_SKIP() << "root may read everything, and uid 65534 cannot run this build or see the temporary folder: a "
                    "folder above them is closed to it";
  }
  for (const char* name : {"secret", "secret.file"}) {
    for (const Use& use : uses(folder_)) {
      const auto words = with(with(use.before, {folder_ / name}), use.after);
      if (use.writes_folder && std::string(name) == "secret") continue;  // a checkpoint of another machine
      const Output output =
          root ? run_file(setpriv, with(with(somebody, {program}), words)) : run_program("assay", words);
      expect_refusal(output, joined(words));
    }
  }
  fs::permissions(folder_ / "secret", fs::perms::owner_all);
}

// What is asked for cannot be printed: the code says so.
TEST(Output, ThatTakesNothingIsInfrastructure) {
  const std::string program = std::string(ASSAY_BINARY_DIR) + "/bin/assay";
  const TemporaryFolder folder;
  write_file(folder / "durations.json", R"({"schema":1,"cases":{"a":{"seconds":1}}})");
  std::vector<std::vector<std::string>> commands = {{"--help"},
                                                    {"--version"},
                                                    {"list", "testcases"},
                                                    {"show", "testcases/moe/moe_10m_licences_bf16_b1"},
                                                    {"golden", "lint", "testcases"},
                                                    {"simulate", folder / "durations.json"},
                                                    {"plugin", "list"},
                                                    {"recipe", "--help"},
                                                    {"run", "--help"}};
  for (const auto& command : all_commands()) commands.push_back(with(command, {"--help"}));
  for (const char* where : {"> /dev/full", ">&-"}) {
    for (const auto& words : commands) {
      const Output output =
          run_file("/bin/sh", with({"-c", std::string("exec \"$0\" \"$@\" ") + where, program}, words));
      EXPECT_EQ(output.code, 3) << joined(words) << " " << where;
      EXPECT_THAT(output.err, HasSubstr("standard output is closed or full")) << joined(words) << " " << where;
    }
  }
}

TEST(Output, StreamsThatAreClosedAreNoFileOfTheRun) {
  const std::string program = std::string(ASSAY_BINARY_DIR) + "/bin/assay";
  const TemporaryFolder folder;
  int number = 0;
  for (const char* where : {"<&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    const std::string out = folder / ("out" + std::to_string(++number));
    const std::vector<std::string> words = {
        "run", "testcases/moe/moe_10m_licences_fp32_b1", "--engine", "replay", "--output", out};
    const std::string closing = std::string("exec \"$0\" \"$@\" ") + where;
    const int code = run_file("/bin/sh", with({"-c", closing, program}, words)).code;
    EXPECT_EQ(code, std::string(where).find(">&-") == std::string::npos ? 0 : 3) << where;
    std::istringstream lines(read_file(out + "/results.jsonl"));
    std::string last;
    for (std::string line; std::getline(lines, line); last = line) {
      EXPECT_TRUE(line.starts_with('{') && line.ends_with('}')) << where << ": " << line;
    }
    EXPECT_THAT(last, HasSubstr("\"event\":\"run_finished\"")) << where;
  }
}

TEST(Output, ThatNobodyReadsAnyMoreCostsNoRun) {
  const std::string program = std::string(ASSAY_BINARY_DIR) + "/bin/assay";
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"run", "testcases/moe", "--engine", "replay", "--output", folder / "out"};
  run_file("/bin/sh", with({"-c", "(sleep 0.3; exec \"$0\" \"$@\") | true", program}, words));
  for (int i = 0; i < 600; ++i) {  // the shell waits for the last process of the pipe alone
    if (read_file(folder / "out/results.jsonl").find("\"event\":\"run_finished\"") != std::string::npos) break;
    ::usleep(100'000);
  }
  EXPECT_THAT(read_file(folder / "out/results.jsonl"), HasSubstr("\"event\":\"run_finished\""));
}

// All options of a help text.
std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> options;
  const std::regex option("(?:^|\n) +(--[a-z][a-z0-9-]*)");
  for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at) options.insert((*at)[1]);
  return options;
}

TEST(Docs, EveryOptionOfEveryHelpStandsInAPage) {
  std::string pages = read_file(fs::path(ASSAY_SOURCE_DIR) / "README.md");
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ASSAY_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() == ".md") pages += read_file(entry.path());
  }
  std::set<std::string> named;
  const std::regex option("--[a-z][a-z0-9-]*");
  for (std::sregex_iterator at(pages.begin(), pages.end(), option), end; at != end; ++at) named.insert(at->str());
  size_t options = 0;
  for (const auto& command : all_commands()) {
    const Output help = run_program("assay", with(command, {"--help"}));
    ASSERT_EQ(help.code, 0) << joined(command);
    EXPECT_THAT(help.out, HasSubstr("usage: assay " + command[0]));
    EXPECT_THAT(pages, HasSubstr("assay " + joined(command)));
    for (const std::string& one : options_in(help.out)) {
      ++options;
      EXPECT_EQ(named.count(one), 1U) << "assay " << joined(command) << " has " << one << ", which no page names";
    }
  }
  EXPECT_GE(options, 150U);
}

TEST(Docs, PositionalWordsAreNoOptionsInAHelp) {
  for (const auto& command : all_commands()) {
    const std::string help = run_program("assay", with(command, {"--help"})).out;
    for (const char* word : {"--path", "--case", "--words", "--word", "--file", "--action"}) {
      EXPECT_EQ(options_in(help).count(word), 0U) << joined(command) << " " << word;
    }
  }
  const std::string recipes = run_program("assay", {"recipe", "run", "--help"}).out;
  EXPECT_THAT(recipes, HasSubstr("recipe files, or folders of them"));
  EXPECT_EQ(recipes.find("case folders"), std::string::npos) << recipes;
}

}  // namespace
}  // namespace assay::tests
