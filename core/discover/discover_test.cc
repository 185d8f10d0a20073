#include "core/discover/discover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/discover/case_reader.h"
#include "tests/unreadable_directories.h"

namespace assay::discover {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Discover : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / ("assay_discover_" + std::to_string(::getpid()) + "_" + info->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return (root_ / file).string();
  }
  std::vector<std::string> names(const std::vector<std::string>& paths) {
    std::vector<std::string> result;
    const auto cases = discover(paths);
    EXPECT_TRUE(cases.ok()) << cases.status().message();
    if (cases.ok()) {
      for (const TestCase& test_case : *cases) result.push_back(test_case.name);
    }
    return result;
  }
  std::string at(const std::string& below) { return (root_ / below).string(); }

  fs::path root_;
};

constexpr const char* kSmall = "MODEL_ARGS:\n  --a: 1\n";

TEST_F(Discover, FindsEveryDirectoryWithAConfigSortedByPath) {
  put("moe/b/model_config.yaml", kSmall);
  put("moe/a/model_config.yaml", kSmall);
  put("gpt/c/model_config.yaml", kSmall);
  put("gpt/c/deeper/d/model_config.yaml", kSmall);
  put("gpt/none/README.md", "");
  EXPECT_THAT(names({at("")}), ElementsAre("gpt/c", "gpt/c/deeper/d", "moe/a", "moe/b"));
}

TEST_F(Discover, TakesATreeACaseOrAConfig) {
  put("moe/a/model_config.yaml", kSmall);
  EXPECT_THAT(names({at("moe/")}), ElementsAre("a"));
  EXPECT_THAT(names({at("moe/a")}), ElementsAre("a"));
  EXPECT_THAT(names({at("moe/a/model_config.yaml")}), ElementsAre("a"));
}

TEST_F(Discover, AConfigOfAnotherNameIsACaseWhereItIsGiven) {
  put("tree/a/model_config.yaml", "MODE: inference\nMODEL_ARGS:\n  --load: x\n");
  put("tree/a/golden_values_dev_any.json", "{}");
  const std::string other = put("tree/a/model_config_long.yaml", "MODE: inference\nMODEL_ARGS:\n  --load: y\n");
  EXPECT_THAT(names({at("tree")}), ElementsAre("a"));
  EXPECT_THAT(names({at("tree"), other, other}), ElementsAre("a", "a/model_config_long"));
  const auto cases = discover({other});
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(cases->front().config, other);
  EXPECT_EQ(cases->front().dir, at("tree/a"));
  EXPECT_EQ(cases->front().goldens.size(), 1U);
}

TEST_F(Discover, ListsACaseOnceHoweverItIsReached) {
  put("moe/a/model_config.yaml", kSmall);
  fs::create_directory_symlink(at("moe"), at("alias"));
  EXPECT_EQ(names({at("moe"), at("moe/a"), at("alias"), at("moe/a/model_config.yaml")}).size(), 1u);
}

TEST_F(Discover, SurvivesLoopsOfLinks) {
  put("moe/a/model_config.yaml", kSmall);
  fs::create_directory_symlink(at(""), at("moe/a/up"));
  fs::create_symlink("self", at("moe/self"));
  EXPECT_THAT(names({at("")}), ElementsAre("moe/a"));
}

TEST_F(Discover, RefusesALinkToAFolderAboveThePath) {
  put("moe/a/model_config.yaml", kSmall);
  put("other/b/model_config.yaml", kSmall);
  fs::create_directory_symlink("..", at("moe/loop"));
  fs::create_directory_symlink("../../..", at("moe/a/high"));
  const auto cases = discover({at("moe")});
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 3U) << "one case and two links";
  EXPECT_TRUE((*cases)[0].error.ok());
  for (const size_t link : {1, 2}) EXPECT_THAT((*cases)[link].error.message(), HasSubstr("leads to a folder above"));
  EXPECT_THAT(names({at("")}), testing::IsSupersetOf({"moe/a", "other/b"})) << "below the path it is walked once";
}

// The system cannot say where such a link leads; one that leads nowhere is no folder.
TEST_F(Discover, AFolderThatCannotBeLookedAtIsAnEntryWithItsError) {
  put("moe/a/model_config.yaml", kSmall);
  fs::create_symlink(std::string(300, 'x'), at("moe/long"));
  fs::create_symlink("nowhere", at("moe/nowhere"));
  fs::create_symlink("itself", at("moe/itself"));
  fs::create_symlink("a/model_config.yaml/b", at("moe/below_a_file"));
  const auto cases = discover({at("moe")});
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 2U);
  EXPECT_TRUE((*cases)[0].error.ok());
  EXPECT_EQ((*cases)[1].error.code(), StatusCode::kInfra);
  EXPECT_THAT((*cases)[1].error.message(), HasSubstr("moe/long: cannot be looked at: File name too long"));
}

// Of the helper: "the kernel has no filters", which skips a test, is said in that case alone.
TEST(UnreadableDirectories, WhatFailsInTheChildIsNoReasonToSkip) {
  if (!tests::with_unreadable_directories([] { return std::string(); })) {
    GTEST_SKIP() << "this kernel filters no system calls";
  }
  const auto thrown = tests::with_unreadable_directories([]() -> std::string { throw std::runtime_error("a fault"); });
  EXPECT_EQ(thrown.value_or("skipped"), "threw: a fault");
  const auto ended = tests::with_unreadable_directories([]() -> std::string { ::_exit(1); });
  EXPECT_THAT(ended.value_or("skipped"), HasSubstr("child ended with"));
}

TEST_F(Discover, AFolderThatCannotBeReadToItsEndIsAnEntryWithItsError) {
  put("moe/a/model_config.yaml", kSmall);
  const auto seen = tests::with_unreadable_directories([this] {
    const auto cases = discover({at("moe")});
    return !cases.ok() || cases->size() != 1 ? "not one entry" : (*cases)[0].error.message();
  });
  if (!seen) GTEST_SKIP() << "this kernel filters no system calls";
  EXPECT_THAT(*seen, HasSubstr("moe: the directory cannot be listed: Input/output error"));
}

TEST_F(Discover, NamesAreTextAndDifferWhateverFoldersAreCalled) {
  const std::vector<std::string> folders = {"m/\xff", "m/\xfe", "m/\\xff", "m/\\x5cxff", "m/\xc3\xa4", "m/a\\b"};
  for (const std::string& folder : folders) put(folder + "/model_config.yaml", kSmall);
  const std::vector<std::string> found = names({at("")});
  EXPECT_THAT(found, testing::UnorderedElementsAre("m/\\xff", "m/\\xfe", "m/\\x5cxff", "m/\\x5cx5cxff", "m/\xc3\xa4",
                                                   "m/a\\b"));
  for (const std::string& name : found) EXPECT_EQ(nlohmann::json::parse(nlohmann::json(name).dump()), name);
}

TEST_F(Discover, AFolderWhoseNameIsNoUtf8IsRefusedByAPrintablePath) {
  put("m/\xff/model_config.yaml", kSmall);
  const auto cases = discover({at("")});
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 1U);
  EXPECT_EQ((*cases)[0].error.code(), StatusCode::kInvalid);
  EXPECT_EQ((*cases)[0].error.message(),
            at("m/\\xff") + ": a name in this path is no UTF-8, as events and reports need: rename it");
  EXPECT_EQ((*cases)[0].dir, at("m/\\xff"));
}

TEST_F(Discover, GivesEqualFoldersOfDifferentRootsDifferentNames) {
  put("one/moe/a/model_config.yaml", kSmall);
  put("two/moe/a/model_config.yaml", kSmall);
  EXPECT_THAT(names({at("one"), at("two")}), ElementsAre("one/moe/a", "two/moe/a"));
}

TEST_F(Discover, ReportsPathsThatAreNoCases) {
  put("file.txt", "");
  EXPECT_EQ(discover({at("absent")}).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(discover({at("absent")}).status().message(), HasSubstr("absent"));
  EXPECT_THAT(discover({at("file.txt")}).status().message(), HasSubstr("not a case"));
  EXPECT_THAT(names({at("")}), IsEmpty());
}

TEST_F(Discover, ABadConfigIsAnErrorOfThatCaseAlone) {
  put("a/model_config.yaml", "MODEL_ARGS:\n  --x: \"1\n");
  put("b/model_config.yaml", kSmall);
  fs::create_directories(at("c/model_config.yaml"));
  fs::create_directories(at("d"));
  fs::create_symlink("nowhere", at("d/model_config.yaml"));
  const auto cases = discover({at("")});
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 4u);
  EXPECT_THAT((*cases)[0].error.message(), HasSubstr("a/model_config.yaml:2:8: the quote"));
  EXPECT_TRUE((*cases)[1].error.ok());
  EXPECT_THAT((*cases)[2].error.message(), HasSubstr("not a regular file"));
  EXPECT_EQ((*cases)[3].error.code(), StatusCode::kNotFound);
}

TEST_F(Discover, KnowsModelFolderAndGoldens) {
  put("moe/a/model_config.yaml", kSmall);
  put("moe/a/golden_values_dev_dgx_h100.json", "{}");
  put("moe/a/golden_values_dev_any.json", "{}");
  put("moe/a/golden_values_dev_dgx_h100.pending.json", "{}");  // not accepted: no golden
  put("moe/a/other.json", "{}");
  const auto cases = discover({at("")});
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ((*cases)[0].model, "moe");
  ASSERT_EQ((*cases)[0].goldens.size(), 2u);
  EXPECT_EQ((*cases)[0].goldens[0].platform, "any");
  EXPECT_EQ((*cases)[0].goldens[1].environment, "dev");
  EXPECT_EQ((*cases)[0].goldens[1].platform, "dgx_h100");
}

TEST_F(Discover, ReadsManyCasesOnSeveralThreadsInTheSameOrder) {
  for (int i = 0; i < 200; ++i) put("m/c" + std::to_string(1000 + i) + "/model_config.yaml", kSmall);
  const auto one = discover({at("")}, 1), four = discover({at("")}, 4);
  ASSERT_TRUE(one.ok() && four.ok());
  ASSERT_EQ(one->size(), 200u);
  for (size_t i = 0; i < one->size(); ++i) EXPECT_EQ((*one)[i].name, (*four)[i].name);
}

TestCase read_text(const std::string& text) {
  TestCase test_case;
  test_case.config = "f";
  read_config(text, test_case);
  return test_case;
}

TEST(CaseReader, ReadsEveryKey) {
  const TestCase test_case = read_text(
      "ENV_VARS:\n  A: 1\n  CUBLAS_WORKSPACE_CONFIG: :4096:8\n  E:\nTEST_TYPE: frozen-start\nMODE: inference\n"
      "LAUNCHER: ft_launcher\nTEST_EVALUATION: xpass\nBEFORE_SCRIPT: |\n  x\nAFTER_SCRIPT: null\n"
      "MODEL_ARGS:\n  --b: true\n  --c: 'true'\n  --d: [x, y]\nMODEL_ARGS_3:\n  --e: 1\nMODEL_ARGS_2: null\n"
      "METRICS:\n  - generated_tokens\n  - \"logprobs\"\n");
  ASSERT_TRUE(test_case.error.ok()) << test_case.error.message();
  ASSERT_EQ(test_case.env_vars.size(), 3u);
  EXPECT_EQ(test_case.env_vars[1].value, ":4096:8");
  EXPECT_EQ(test_case.env_vars[2].value, "");
  EXPECT_EQ(test_case.test_type, "frozen-start");
  EXPECT_EQ(test_case.mode, "inference");
  EXPECT_EQ(test_case.launcher, "ft_launcher");
  EXPECT_EQ(test_case.test_evaluation, "xpass");
  EXPECT_EQ(test_case.before_script, "x\n");
  EXPECT_EQ(test_case.after_script, "");
  ASSERT_EQ(test_case.model_args.entries.size(), 3u);
  EXPECT_TRUE(test_case.model_args.entries[0].plain);
  EXPECT_FALSE(test_case.model_args.entries[1].plain);
  EXPECT_THAT(test_case.model_args.entries[2].items, ElementsAre("x", "y"));
  ASSERT_EQ(test_case.further_model_args.size(), 2u);
  EXPECT_EQ(test_case.further_model_args[0].name, "MODEL_ARGS_2");
  EXPECT_FALSE(test_case.further_model_args[0].present);
  EXPECT_THAT(*test_case.metrics, ElementsAre("generated_tokens", "logprobs"));
}

TEST(CaseReader, KeepsAbsentNullAndEmptyMetricsApart) {
  EXPECT_FALSE(read_text("MODEL_ARGS:\n").metrics.has_value());
  EXPECT_TRUE(read_text("MODEL_ARGS:\nMETRICS:\n").metrics_is_null);
  EXPECT_FALSE(read_text("MODEL_ARGS:\nMETRICS: []\n").metrics_is_null);
  EXPECT_THAT(*read_text("MODEL_ARGS:\nMETRICS: []\n").metrics, IsEmpty());
}

TEST(CaseReader, RefusesWrongShapesWithTheirPlace) {
  EXPECT_EQ(read_text("MODEL_ARGS: 3\n").error.message(), "f:1:13: MODEL_ARGS must be a mapping of --argument: value");
  EXPECT_EQ(read_text("MODEL_ARGS:\n  --a: {b: c}\n").error.message(),
            "f:2:8: MODEL_ARGS --a is a mapping; a scalar or a list is expected");
  EXPECT_THAT(read_text("MODEL_ARGS:\n  --a: [[b]]\n").error.message(), HasSubstr("f:2:9: "));
  EXPECT_THAT(read_text("MODEL_ARGS:\nENV_VARS: [a]\n").error.message(), HasSubstr("f:2:11: ENV_VARS must be"));
  EXPECT_THAT(read_text("MODEL_ARGS:\nENV_VARS:\n  A: \"b\\0c\"\n").error.message(),
              HasSubstr("f:3:6: ENV_VARS A: a variable"));
  EXPECT_THAT(read_text("MODEL_ARGS:\nASSAY: {timeout: 1e300h}\n").error.message(),
              HasSubstr("ASSAY.timeout '1e300h'"));
  EXPECT_THAT(read_text("MODEL_ARGS:\nENV_VARS:\n  A B: c\n").error.message(),
              HasSubstr("'A B' is not a variable name"));
  EXPECT_THAT(read_text("MODEL_ARGS:\nMETRICS: logprobs\n").error.message(), HasSubstr("METRICS must be a list"));
  EXPECT_THAT(read_text("MODEL_ARGS:\nMODE: inferense\n").error.message(), HasSubstr("did you mean 'inference'?"));
  EXPECT_THAT(read_text("MODEL_ARGS:\nTEST_TYPE: [x]\n").error.message(), HasSubstr("TEST_TYPE must be a scalar"));
  EXPECT_THAT(read_text("TEST_TYPE: regular\n").error.message(), HasSubstr("MODEL_ARGS is missing"));
  TestCase judged;
  read_config("METRICS: [logprobs]\n", judged, /*needs_model_args=*/false);
  EXPECT_TRUE(judged.error.ok()) << "assay compare needs METRICS and ASSAY alone";
  EXPECT_THAT(read_text("- a\n").error.message(), HasSubstr("f:1:1: a mapping"));
  EXPECT_THAT(read_text("").error.message(), HasSubstr("holds nothing"));
}

TEST(CaseReader, NotesUnknownAndRepeatedKeys) {
  const TestCase test_case = read_text("MODEL_ARGS:\n  --a: 1\n  --a: 2\nMETRIX: []\n");
  EXPECT_TRUE(test_case.error.ok());
  EXPECT_EQ(test_case.model_args.entries[0].text, "2");
  EXPECT_THAT(test_case.notes, ElementsAre("line 3: '--a' repeats line 2; the later one counts",
                                           "line 4: unknown key 'METRIX' is ignored (did you mean 'METRICS'?)"));
}

TEST(CaseReader, ReadsTheAssayBlock) {
  const TestCase test_case = read_text(
      "MODEL_ARGS:\nASSAY:\n  engine: static_legacy\n  backend: auto\n  golden: known_completion\n"
      "  known_completion: golden/a.txt\n  tolerance: {logprobs: 0.001}\n  timeout: 120s\n  memory_limit: 4GiB\n"
      "  requires: [CHECKPOINT_LOAD_PATH]\n  tags: quick\n  workers_per_device: 3\n  waivers:\n    - {reason: x, "
      "owner: y, issue: z, expires: "
      "2027-01-01, verdicts: [DRIFT]}\n");
  ASSERT_TRUE(test_case.error.ok()) << test_case.error.message();
  const AssayBlock& block = test_case.assay;
  EXPECT_TRUE(block.present);
  EXPECT_EQ(block.engine, "static_legacy");
  EXPECT_EQ(block.golden, GoldenKind::kKnownCompletion);
  EXPECT_THAT(block.known_completion, ElementsAre("golden/a.txt"));
  EXPECT_EQ(block.tolerance.at("logprobs"), 0.001);
  EXPECT_EQ(block.timeout_s, 120);
  EXPECT_EQ(block.memory_limit, 4ull << 30);
  EXPECT_THAT(block.requirements, ElementsAre("CHECKPOINT_LOAD_PATH"));
  EXPECT_THAT(block.tags, ElementsAre("quick"));
  EXPECT_EQ(block.workers_per_device, 3);
  ASSERT_EQ(block.waivers.size(), 1U);
  EXPECT_EQ(block.waivers[0].owner, "y");
}

TEST(CaseReader, WordsThatWouldCountAsOthersAreRefusedWithTheNearest) {
  const auto error = [](const std::string& lines) { return read_text("MODEL_ARGS:\n" + lines).error.message(); };
  EXPECT_THAT(error("TEST_TYPE: ckpt_resume\n"),
              HasSubstr("f:2:12: TEST_TYPE 'ckpt_resume' is none of regular, frozen-start, ckpt-resume, frozen-resume, "
                        "checkpoint-consistency, release (did you mean 'ckpt-resume'?)"));
  EXPECT_THAT(error("LAUNCHER: foo\n"), HasSubstr("LAUNCHER 'foo' is none of torchrun, ft_launcher"));
  EXPECT_THAT(error("METRICS: {lm loss: 1}\n"),
              HasSubstr("METRICS must be a list of names, not a mapping: '- lm loss'"));
  for (const char* type :
       {"regular", "frozen-start", "ckpt-resume", "frozen-resume", "checkpoint-consistency", "\"release\"", ""}) {
    EXPECT_EQ(error(std::string("TEST_TYPE: ") + type + "\nLAUNCHER: torchrun\n"), "");
  }
}

TEST(CaseReader, ATolerancesNameIsAMetricOfTheCase) {
  const auto error = [](const std::string& metrics, const std::string& name) {
    return read_text("MODEL_ARGS:\n" + metrics + "ASSAY:\n  tolerance: {" + name + ": 1}\n").error.message();
  };
  EXPECT_THAT(error("MODE: pretraining\n", "lm los"),
              HasSubstr("ASSAY.tolerance 'lm los' is no metric of the case (did you mean 'lm loss'?)"));
  EXPECT_EQ(error("MODE: pretraining\n", "lm_loss"), "");
  EXPECT_THAT(error("MODE: inference\nMETRICS: [logprobs]\n", "logprob"), HasSubstr("did you mean 'logprobs'?"));
  EXPECT_EQ(error("MODE: inference\nMETRICS: [logprobs, own_metric]\n", "own_metric"), "");
  EXPECT_EQ(error("MODE: rl\nMETRICS: [lm-loss]\n", "lm loss"), "");
}

TEST(CaseReader, RefusesMistakesInTheAssayBlock) {
  const auto error = [](const std::string& line) {
    return read_text("MODEL_ARGS:\nASSAY:\n  " + line + "\n").error.message();
  };
  EXPECT_EQ(error("tolerence: {a: 1}"), "f:3:14: ASSAY.tolerence is unknown (did you mean 'tolerance'?)");
  EXPECT_THAT(error("tolerance: {a: x}"), HasSubstr("a number of at least 0"));
  EXPECT_THAT(error("tolerance: {a: -1}"), HasSubstr("a number of at least 0"));
  EXPECT_THAT(error("tolerance: {a: nan}"), HasSubstr("a number of at least 0"));
  EXPECT_THAT(error("timeout: soon"), HasSubstr("no time above 0"));
  EXPECT_THAT(error("timeout: 0"), HasSubstr("no time above 0"));
  EXPECT_THAT(error("memory_limit: 4 apples"), HasSubstr("no size above 0"));
  for (const char* bad : {"0", "65", "1.5", "some", "[1]"}) {
    EXPECT_THAT(error(std::string("workers_per_device: ") + bad), HasSubstr("a whole number from 1 to 64")) << bad;
  }
  EXPECT_THAT(error("golden: known"), HasSubstr("neither known_completion"));
  EXPECT_THAT(error("engine: [a]"), HasSubstr("must be a text"));
  EXPECT_THAT(error("known_completion: a"), HasSubstr("needs ASSAY.golden"));
}

}  // namespace
}  // namespace assay::discover
