// assay as somebody else has it: installed into a prefix, found by find_package, with plugins that were built outside
// of its tree; and the commands that begin something: plugin new, plugin test, new, doctor.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

// One installation for all tests of this program.
const fs::path& prefix() {
  static const TemporaryFolder folder;
  static const fs::path installed = [] {
    const Output done =
        run_file(find_executable("cmake"), {"--install", ASSAY_BINARY_DIR, "--prefix", folder / "prefix"});
    EXPECT_EQ(done.code, 0) << done.out << done.err;
    return folder.path() / "prefix";
  }();
  return installed;
}

Output installed(const std::vector<std::string>& words, const fs::path& folder = {}) {
  return run_file(prefix() / "bin/assay", words, "", folder);
}

TEST(Install, HoldsProgramsPluginsHeadersAndThePackage) {
  for (const char* file : {"bin/assay", "bin/assay-worker", "lib/assay/plugins/engine_buffered.so",
                           "include/assay/plugin_abi.h", "include/assay/abi/launcher.h", "include/assay/sdk.hpp",
                           "lib/cmake/assay/assayConfig.cmake", "lib/cmake/assay/assayConfigVersion.cmake",
                           "share/assay/plugin_templates/engine/CMakeLists.txt", "share/doc/assay/plugin-guide.md"}) {
    EXPECT_TRUE(fs::exists(prefix() / file)) << file;
  }
}

TEST(Install, TheInstalledProgramFindsItsPluginsAndItsWorker) {
  const Output list = installed({"plugin", "list"});
  EXPECT_THAT(list.out, HasSubstr("engine static_legacy"));
  const TemporaryFolder folder;
  const Output run = installed({"run", "testcases/moe/moe_10m_licences_text_only", "--output", folder / "out"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

// What a new plugin's author does next, with the package below `package` and the program `assay` made of it.
void expect_builds_and_passes(const std::string& kind, const fs::path& package, const fs::path& assay) {
  const TemporaryFolder folder;
  const Output written = run_file(assay, {"plugin", "new", "my_own", "--kind", kind}, "", folder.path());
  ASSERT_EQ(written.code, 0) << written.err;
  const std::string source = folder / (kind + "_my_own");
  EXPECT_THAT(written.out, HasSubstr("CMakeLists.txt"));
  EXPECT_THAT(written.out, HasSubstr("-DCMAKE_PREFIX_PATH=" + package.string() + " "));
  EXPECT_THAT(read_file(source + "/README.md"), HasSubstr("assay plugin test build/" + kind + "_my_own.so"));
  const std::string build = source + "/build";
  const Output configured =
      run_file(find_executable("cmake"), {"-S", source, "-B", build, "-DCMAKE_PREFIX_PATH=" + package.string()});
  ASSERT_EQ(configured.code, 0) << configured.out << configured.err;
  const Output built = run_file(find_executable("cmake"), {"--build", build});
  ASSERT_EQ(built.code, 0) << built.out << built.err;
  const Output tested = run_file(find_executable("ctest"), {"--test-dir", build, "--output-on-failure"});
  EXPECT_EQ(tested.code, 0) << tested.out;
  EXPECT_THAT(tested.out, HasSubstr("0 tests failed out of 2"));
  const Output kit = run_file(assay, {"plugin", "test", build + "/" + kind + "_my_own.so", "--json"});
  EXPECT_EQ(kit.code, 0) << kit.out;
  EXPECT_EQ(json::parse(kit.out)["name"], "my_own");
  const Output again = run_file(assay, {"plugin", "new", "my_own", "--kind", kind}, "", folder.path());
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
}

class NewPlugin : public testing::TestWithParam<const char*> {};

TEST_P(NewPlugin, BuildsPassesItsTestsAndTheKitOutsideOfTheTree) {
  expect_builds_and_passes(GetParam(), prefix(), prefix() / "bin/assay");
}

INSTANTIATE_TEST_SUITE_P(Kinds, NewPlugin, testing::Values("engine", "comparator", "launcher"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(NewPlugin, TheProgramOfABuildFolderServesAsWellAsAnInstalledOne) {
  expect_builds_and_passes("comparator", ASSAY_BINARY_DIR, ASSAY_BINARY_DIR "/bin/assay");
}

TEST(NewPlugin, TwoOfThemAreBuiltInOneProject) {
  const TemporaryFolder folder;
  std::string project = "cmake_minimum_required(VERSION 3.25)\nproject(two LANGUAGES CXX)\n";
  for (const char* name : {"first", "second"}) {
    ASSERT_EQ(installed({"plugin", "new", name, "--kind", "comparator"}, folder.path()).code, 0);
    project += std::string("add_subdirectory(comparator_") + name + ")\n";
  }
  write_file(folder / "CMakeLists.txt", project);
  const Output configured = run_file(find_executable("cmake"), {"-S", folder.path().string(), "-B", folder / "build",
                                                                "-DCMAKE_PREFIX_PATH=" + prefix().string()});
  ASSERT_EQ(configured.code, 0) << configured.out << configured.err;
  const Output built = run_file(find_executable("cmake"), {"--build", folder / "build"});
  EXPECT_EQ(built.code, 0) << built.out << built.err;
}

TEST(NewCase, PathsThatModelArgsCannotHoldAreRefused) {
  for (const std::string name :
       {"Tom's", "two  blanks", "a$x", "a${HOME}", "a\\b", "a*b", "a?b", "a;b", "a&b", "a`b", "say \"x\""}) {
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / name);
    const Output refused = run_program("assay", {"new", folder / "mine", "--checkpoint", folder / name});
    EXPECT_EQ(refused.code, 2) << name << refused.out << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("MODEL_ARGS cannot hold this path")) << name;
    EXPECT_FALSE(fs::exists(folder / "mine")) << name;
  }
}

TEST(NewCase, PathsThatModelArgsCanHoldAreReadBackAsTheyAre) {
  for (const std::string name : {"plain", "one blank", "a#b", "a:b", "a{b}", "[x]", "a|b", "(a)", "\xc3\xa4"}) {
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / name);
    const Output made = run_program("assay", {"new", folder / "mine", "--checkpoint", folder / name});
    ASSERT_EQ(made.code, 0) << name << made.err;
    const Output shown = run_program("assay", {"show", folder / "mine", "--json"});
    const json seen = json::parse(shown.out, nullptr, false);
    ASSERT_TRUE(seen.is_object() && seen["arguments"].is_array()) << name << shown.out << shown.err;
    json load;
    for (const json& argument : seen["arguments"]) {
      if (argument["option"] == "--load") load = argument["values"];
    }
    EXPECT_EQ(load, json::array({folder / name})) << name;
  }
}

TEST(NewPlugin, ACaseRunsOnAnEngineAndAComparatorOfSomebodyElse) {
  const TemporaryFolder folder;
  const std::string own = folder / "plugins";
  fs::create_directories(own);
  // The plugins of the tree under another name would do the same; these are the installed ones, found through
  // --plugin-path.
  for (const char* file : {"engine_example_minimal.so", "comparator_example_minimal.so"}) {
    fs::copy_file(prefix() / "lib/assay/plugins" / file, fs::path(own) / file);
  }
  const Output made = installed({"new", folder / "echo", "--like", "testcases/moe/moe_10m_licences_text_only",
                                 "--prompt", "gold", "--metrics", "example_minimal", "--engine", "example_minimal"});
  ASSERT_EQ(made.code, 0) << made.err;
  write_file(folder / "echo/golden_values_dev_any.json",
             R"({"0": {"input_prompt": "gold", "generated_text": "gold", "latency": 0.1}})");
  const Output equal = installed({"run", folder / "echo", "--plugin-path", own, "--output", folder / "out"});
  EXPECT_EQ(equal.code, 0) << equal.out << equal.err;
  EXPECT_THAT(equal.out, HasSubstr("IDENTICAL"));
  write_file(folder / "echo/golden_values_dev_any.json",
             R"({"0": {"input_prompt": "gold", "generated_text": "gilt", "latency": 0.1}})");
  const Output other = installed({"run", folder / "echo", "--plugin-path", own, "--output", folder / "out2"});
  EXPECT_EQ(other.code, 1) << other.out;
}

TEST(NewPlugin, BadNamesKindsAndTakenNamesAreRefused) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"", "../x", "a b", "Big", "9x", "x-y", std::string(60, 'a')};
  for (const std::string& name : names) {
    const Output refused = run_program("assay", {"plugin", "new", name, "--output", folder / "out"});
    EXPECT_EQ(refused.code, 2) << name;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
  const Output taken = run_program("assay", {"plugin", "new", "buffered", "--output", folder / "out"});
  EXPECT_EQ(taken.code, 2);
  EXPECT_THAT(taken.err, HasSubstr("engine_buffered.so; choose another name"));
  EXPECT_EQ(run_program("assay", {"plugin", "new", "x", "--kind", "backend", "--output", folder / "out"}).code, 2);
  EXPECT_EQ(run_program("assay", {"plugin", "new"}).code, 2);
  EXPECT_EQ(run_program("assay", {"plugin", "new", "x", "--output", "/proc/nowhere/x"}).code, 3);
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(PluginTest, ExitCodesAndBadInput) {
  const std::string plugins = ASSAY_BINARY_DIR "/lib/assay/plugins/";
  EXPECT_EQ(run_program("assay", {"plugin", "test"}).code, 2);
  EXPECT_EQ(run_program("assay", {"plugin", "test", "/nonexistent/engine_x.so"}).code, 1);
  EXPECT_EQ(run_program("assay", {"plugin", "test", plugins + "engine_buffered.so", "--options", "nonsense"}).code, 2);
  EXPECT_EQ(run_program("assay", {"plugin", "test", plugins + "engine_buffered.so", "--timeout", "0"}).code, 2);
}

TEST(NewCase, LikeAnotherCaseRunsAtOnce) {
  const TemporaryFolder folder;
  const Output made =
      run_program("assay", {"new", folder / "mine", "--like", "testcases/moe/moe_10m_licences_fp32_buffered",
                            "--prompt", "It's \"quoted\": #1 ${HOME}\nnext line", "--tokens", "8"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("next: assay run "));
  const Output list = run_program("assay", {"list", folder / "mine", "--json"});
  EXPECT_TRUE(json::parse(list.out)[0]["error"].is_null()) << list.out;
  const Output run = run_program("assay", {"run", folder / "mine", "--output", folder / "out"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const Output again = run_program("assay", {"new", folder / "mine"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
}

TEST(NewCase, WithoutACheckpointItIsSkippedWithTheReason) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_program("assay", {"new", folder / "empty", "--metrics", "generated_text"}).code, 0);
  const Output run = run_program("assay", {"run", folder / "empty", "--output", folder / "out"});
  EXPECT_EQ(run.code, 4) << run.out;
  EXPECT_THAT(run.out, HasSubstr("CHECKPOINT_LOAD_PATH"));
}

TEST(NewCase, ANameIsRefusedOrItsCaseIsGood) {
  const TemporaryFolder folder;
  const std::string odd = "[]{}*&@%!|>`?,~^=+;<()$#:'\"\\ \t\n\xe9";
  for (const char c : odd + "aZ9_-.") {
    for (const std::string& name : {std::string(1, c) + "x", "x" + std::string(1, c)}) {
      const Output made = run_program("assay", {"new", folder / name});
      if (odd.find(c) != std::string::npos) {
        EXPECT_EQ(made.code, 2) << name;
        EXPECT_THAT(made.err, HasSubstr("expected letters, digits, '_', '-' and '.'")) << name;
        EXPECT_FALSE(std::filesystem::exists(folder.path() / name)) << name;
        continue;
      }
      ASSERT_EQ(made.code, 0) << name << made.err;
      EXPECT_TRUE(json::parse(run_program("assay", {"list", folder / name, "--json"}).out)[0]["error"].is_null())
          << name;
    }
  }
}

TEST(NewCase, BadInputIsOneLineAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> all = {
      {"new"},
      {"new", folder / "x", "--checkpoint", "/nonexistent"},
      {"new", folder / "x", "--like", "/nonexistent"},
      {"new", folder / "x", "--like", "testcases"},
      {"new", folder / "x", "--prompt", "a", "--prompt-file", "b"},
      {"new", folder / "x", "--prompt-file", "/nonexistent"},
      {"new", folder / "x", "--prompt-file", folder / "empty.jsonl"},
      {"new", folder / "x", "--prompt-file", folder / "no.jsonl"},
      {"new", folder / "x", "--prompt-file", folder / "blank.jsonl"},
      {"new", folder / "x", "--prompt-file", folder.path().string()},
      {"new", folder / "x", "--prompt", ""},
      {"new", folder / "x", "--prompt", "a", "--prompt", ""},
      {"new", folder / "x", "--prompt", "caf\xe9"},
      {"new", folder / "x", "--engine", "nobody"},
      {"new", folder / "x", "--engine", ""},
      {"new", folder / "x", "--metrics", "generated_text", "--metrics", "nothing"},
      {"new", folder / "x", "--metrics", ""},
      {"new", folder / "x", "--tokenizer-model", "/nonexistent"},
      {"new", folder / "x", "--like", "testcases/moe/moe_10m_licences_bf16_b1", "--tokenizer-type", "NullTokenizer"},
      {"new", folder / "deep/x", "--engine", "nobody"},
      {"new", folder / "x", "--tokens", "0"},
      {"new", folder / "x", "--metrics", "a", "--metamorphic"},
      {"new", folder / "a b"},
  };
  write_file(folder / "empty.jsonl", "");
  write_file(folder / "no.jsonl", "hallo\n");
  write_file(folder / "blank.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\"}\n");
  for (const auto& words : all) {
    const Output refused = run_program("assay", words);
    EXPECT_EQ(refused.code, 2) << words.back() << refused.out;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_FALSE(fs::exists(folder / "x")) << words.back();
    EXPECT_FALSE(fs::exists(folder / "deep")) << words.back();
  }
}

TEST(NewCase, AFolderThatCannotBeMadeOrFilledLeavesNothing) {
  const Output proc = run_program("assay", {"new", "/proc/nowhere/deep/x"});
  EXPECT_EQ(proc.code, 3) << proc.out;
  EXPECT_EQ(std::count(proc.err.begin(), proc.err.end(), '\n'), 1) << proc.err;
}

TEST(Doctor, ExplainsThisMachineInWordsAndAsJson) {
  const Output text = run_program("assay", {"doctor"});
  EXPECT_EQ(text.code, 0) << text.out;
  for (const char* part : {"plugin ABI", "engine buffered", "backends", "libcurl", "instructions", "open files",
                           "temporary", "/dev/shm", "locale", "ASSAY_PLUGIN_PATH", "0 problems"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const json report = json::parse(run_program("assay", {"doctor", "--json"}).out);
  EXPECT_EQ(report["healthy"], true);
  for (const json& one : report["findings"]) {
    for (const char* field : {"section", "name", "state", "text", "remedy"}) EXPECT_TRUE(one.contains(field));
  }
}

TEST(Doctor, ABrokenPluginIsAProblemWithExitCode1) {
  const TemporaryFolder folder;
  write_file(folder / "engine_torn.so", "no ELF");
  const Output text = run_program("assay", {"doctor", "--plugin-path", folder.path().string()});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, HasSubstr("engine torn"));
  EXPECT_THAT(run_program("assay", {"doctor", "--output", "/proc"}).out, HasSubstr("no file can be made"));
}

TEST(Docs, ExamplesRunAndOptionsExist) {
  const fs::path python = find_executable("python3");
  ASSERT_FALSE(python.empty());
  const Output checked = run_file(python, {"tests/docs_examples.py", ASSAY_SOURCE_DIR, prefix().string()});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

}  // namespace
}  // namespace assay::tests
