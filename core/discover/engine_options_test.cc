#include "core/discover/engine_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/discover/case_reader.h"
#include "core/discover/input_path.h"
#include "core/discover/show.h"

namespace assay::discover {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kLeast =
    "  --load: c\n  --tokenizer-type: TikTokenizer\n  --tokenizer-model: v.json\n  --use-legacy-static-engine: true\n";

TestCase inference_case(const std::string& entries) {
  TestCase test_case;
  test_case.config = "f";
  read_config("MODE: inference\nMODEL_ARGS:\n" + entries, test_case);
  EXPECT_TRUE(test_case.error.ok()) << test_case.error.message();
  return test_case;
}

Result<EngineOptions> resolve(const std::string& entries, ArgumentsFor who = ArgumentsFor::kOurEngine) {
  const TestCase test_case = inference_case(entries);
  const auto parsed = read_arguments(test_case, {});
  if (!parsed.ok()) return parsed.status();
  return resolve_engine_options(test_case, model::apply_checkpoint_args(parsed->record, nullptr), who);
}

std::string failure(const std::string& entries) {
  const auto options = resolve(entries);
  return options.ok() ? "ok" : options.status().message();
}

TEST(EngineOptions, StopWordsReachForeignEnginesWhateverTheScript) {
  const std::string words = std::string(kLeast) + "  --stop-words: '\"the\"'\n";
  const auto foreign = resolve(words, ArgumentsFor::kForeignEngine);
  ASSERT_TRUE(foreign.ok()) << foreign.status().message();
  EXPECT_THAT(foreign->buffered.stop_words, ElementsAre("the"));
  const auto ours = resolve(words);
  ASSERT_TRUE(ours.ok()) << ours.status().message();
  EXPECT_THAT(ours->buffered.stop_words, IsEmpty()) << "the static script has none";
  EXPECT_THAT(ours->notes, ElementsAre(HasSubstr("stop_words has no effect")));
}

TEST(EngineOptions, DefaultsAreMegatrons) {
  const auto options = resolve(kLeast);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->engine, "static_legacy");
  EXPECT_EQ(options->max_requests, 8);
  EXPECT_EQ(options->max_sequence_length, 2560);
  EXPECT_EQ(options->tokens_to_generate, 30);
  EXPECT_EQ(options->temperature, 1.0);
  EXPECT_EQ(options->top_k, 1);
  EXPECT_EQ(options->top_p, 0.0);
  EXPECT_EQ(options->seed, 1234);
  EXPECT_FALSE(options->return_log_probs);
  EXPECT_EQ(options->first_request_id, 0);
  EXPECT_EQ(options->tokenizer.pattern, "v2");
  EXPECT_EQ(options->tokenizer.num_special, 1000);
  EXPECT_FALSE(options->tokenizer.vocab_size.has_value());
  EXPECT_FALSE(options->checkpoint_step.has_value());
}

TEST(EngineOptions, CudaGraphsShiftTheRequestIds) {
  EXPECT_EQ(resolve(std::string(kLeast) + "  --cuda-graph-impl: local\n  --flash-decode: true\n")->first_request_id, 1);
  EXPECT_EQ(resolve(std::string(kLeast) + "  --enable-cuda-graph: true\n  --flash-decode: true\n")->first_request_id,
            1);
  EXPECT_EQ(resolve(std::string(kLeast) + "  --cuda-graph-impl: none\n")->first_request_id, 0);
  EXPECT_THAT(failure(std::string(kLeast) + "  --cuda-graph-impl: local\n"), HasSubstr("needs --flash-decode"));
  EXPECT_THAT(failure(std::string(kLeast) + "  --cuda-graph-impl: local\n  --enable-cuda-graph: true\n"),
              HasSubstr("exclude"));
}

TEST(EngineOptions, RulesBetweenArgumentsAreEnforced) {
  const auto with = [](const std::string& more) { return failure(kLeast + more); };
  EXPECT_THAT(with("  --top_k: 5\n  --top_p: 0.9\n"), HasSubstr("--top_k 5 and --top_p 0.9 exclude each other"));
  EXPECT_THAT(with("  --top_p: 0.9\n"), HasSubstr("give --top_k 0"));
  EXPECT_EQ(with("  --top_k: 0\n  --top_p: 0.9\n"), "ok");
  EXPECT_THAT(with("  --top_k: 0\n  --top_p: 1.5\n"), HasSubstr("--top_p 1.5"));
  EXPECT_THAT(with("  --top_k: 0\n  --temperature: 0\n"), HasSubstr("--temperature 0"));
  EXPECT_EQ(with("  --temperature: 0\n"), "ok");
  EXPECT_THAT(with("  --prompts: a\n  --prompt-file: b\n"), HasSubstr("exclude each other"));
  EXPECT_THAT(with("  --inference-max-requests: 0\n"), HasSubstr("--inference-max-requests 0 is below 1"));
  EXPECT_THAT(with("  --num-tokens-to-generate: -1\n"), HasSubstr("is below 0"));
  EXPECT_THAT(with("  --ckpt-format: torch\n"), HasSubstr("--ckpt-format torch cannot be read"));
  EXPECT_EQ(with("  --ckpt-format: torch\n  --auto-detect-ckpt-format: true\n"), "ok");
  EXPECT_THAT(with("  --sequence-parallel: true\n  --tensor-model-parallel-size: 2\n"),
              HasSubstr("--sequence-parallel"));
  EXPECT_EQ(with("  --sequence-parallel: true\n"), "ok");
}

TEST(EngineOptions, TheBufferedEngineHasRulesOfItsOwn) {
  const std::string buffered = "  --load: c\n  --tokenizer-type: NullTokenizer\n  --vocab-size: 100\n";
  EXPECT_EQ(resolve(buffered)->engine, "buffered");
  EXPECT_THAT(failure(buffered + "  --flash-decode: true\n"), HasSubstr("is for the static engine"));
  EXPECT_THAT(
      failure(buffered +
              "  --inference-dynamic-batching-max-requests: 65\n  --inference-dynamic-batching-max-tokens: 64\n"),
      HasSubstr("max-requests 65 is above"));
}

// The static script behind which the buffered engine stands, and the dynamic one.
TEST(EngineOptions, TheScriptDecidesTheFormOfTheResultsAndWhichArgumentsCount) {
  const std::string buffered =
      "  --load: c\n  --tokenizer-type: NullTokenizer\n  --vocab-size: 100\n"
      "  --inference-dynamic-batching-buffer-size-gb: 2.5\n  --inference-dynamic-batching-max-tokens: 64\n"
      "  --enable-chunked-prefill: true\n  --inference-dynamic-batching-prefix-caching: true\n"
      "  --inference-dynamic-batching-prefix-caching-eviction-policy: lru\n  --incoming-requests-per-step: 4\n"
      "  --stop-words: 7\n  --termination-id: -1\n";
  const auto fixed = resolve(buffered);
  ASSERT_TRUE(fixed.ok()) << fixed.status().message();
  EXPECT_FALSE(fixed->buffered.dynamic_results);
  EXPECT_EQ(fixed->buffered.buffer_size_gb, 2.5);
  EXPECT_EQ(fixed->buffered.max_requests, 8) << "--inference-max-requests";
  EXPECT_EQ(fixed->buffered.max_tokens, 64);
  EXPECT_TRUE(fixed->buffered.chunked_prefill);
  EXPECT_TRUE(fixed->buffered.prefix_caching);
  EXPECT_EQ(fixed->buffered.eviction_policy, "lru");
  EXPECT_EQ(fixed->buffered.requests_per_step, 0) << "the static script sends all at once";
  EXPECT_THAT(fixed->buffered.stop_words, IsEmpty());
  EXPECT_THAT(fixed->notes, ::testing::Contains(HasSubstr("stop_words has no effect in the static script")));
  const auto dynamic = resolve(buffered + "ASSAY:\n  script: examples/inference/gpt_dynamic_inference.py\n");
  ASSERT_TRUE(dynamic.ok()) << dynamic.status().message();
  EXPECT_TRUE(dynamic->buffered.dynamic_results);
  EXPECT_FALSE(dynamic->buffered.max_requests.has_value()) << "the buffer decides";
  EXPECT_EQ(dynamic->buffered.requests_per_step, 4);
  EXPECT_EQ(dynamic->buffered.requests_per_second, 100);
  EXPECT_THAT(dynamic->buffered.stop_words, ElementsAre("7"));
  EXPECT_EQ(dynamic->buffered.termination_id, -1);
  EXPECT_THAT(failure(buffered + "  --inference-dynamic-batching-block-size: 0\n"),
              HasSubstr("block-size 0 is below 1"));
  EXPECT_THAT(failure(buffered + "  --inference-dynamic-batching-logprobs-mode: processed_logprobs\n"),
              HasSubstr("processed_logprobs is not computed here"));
}

TEST(EngineOptions, MissingAndUnknownPartsAreNamed) {
  EXPECT_THAT(failure("  --tokenizer-type: NullTokenizer\n"), HasSubstr("--load is missing"));
  EXPECT_THAT(failure("  --load: c\n"), HasSubstr("--tokenizer-type is missing"));
  EXPECT_THAT(failure("  --load: c\n  --tokenizer-type: TikTokenizer\n"), HasSubstr("--tokenizer-model is missing"));
  EXPECT_EQ(resolve("  --load: c\n  --tokenizer-type: HuggingFaceTokenizer\n").status().code(),
            StatusCode::kUnsupported);
}

class Prompts : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / ("assay_prompts_" + std::to_string(::getpid()) + "_" + info->name());
    fs::create_directories(root_ / "repo/.git");
    fs::create_directories(root_ / "repo/testcases/m/c");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string file(const std::string& text) {
    std::ofstream(root_ / "p.jsonl", std::ios::binary) << text;
    return (root_ / "p.jsonl").string();
  }
  Result<std::vector<std::string>> load(const std::string& text, int64_t limit = 0) {
    EngineOptions options;
    options.prompt_file = file(text);
    options.prompt_limit = limit;
    return load_prompts(options, root_.string());
  }
  std::string problem(const std::string& text) {
    const auto prompts = load(text);
    return prompts.ok() ? "ok" : prompts.status().message();
  }

  fs::path root_;
};

TEST_F(Prompts, ReadsOneObjectALine) {
  EXPECT_THAT(*load("{\"text\": \"a\\nb\"}\n{\"id\": 1, \"text\": \"\xe2\x80\x9c\\u00e9\"}"),
              ElementsAre("a\nb", "\xe2\x80\x9c\xc3\xa9"));
  EXPECT_THAT(*load("{\"text\": \"a\"}\r\n{\"text\": \"b\"}\r\n"), ElementsAre("a", "b"));
}

TEST_F(Prompts, StopsAtTheLimitWithoutReadingOn) {
  EXPECT_THAT(*load("{\"text\": \"a\"}\nbroken\n", 1), ElementsAre("a"));
}

TEST_F(Prompts, NamesFileAndLineOfABadOne) {
  EXPECT_THAT(problem("{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n"), HasSubstr("p.jsonl:2: "));
  EXPECT_THAT(problem("{\"text\": \"a\"\n"), HasSubstr("p.jsonl:1: "));
  EXPECT_THAT(problem("{\"text\": \"a\"}\n{\"txt\": \"b\"}\n"), HasSubstr("p.jsonl:2: "));
  EXPECT_THAT(problem("{\"text\": 5}\n"), HasSubstr("p.jsonl:1: "));
  EXPECT_THAT(problem("{\"text\": \"\xff\"}\n"), HasSubstr("p.jsonl:1: "));
  EXPECT_THAT(problem("{\"text\": \"\\ud800\"}\n"), HasSubstr("p.jsonl:1: "));
  EXPECT_THAT(problem("[1]\n"), HasSubstr("p.jsonl:1: "));
  EXPECT_THAT(problem(""), HasSubstr("no prompt in the file"));
}

TEST_F(Prompts, NeedExactlyOneSource) {
  EngineOptions options;
  EXPECT_THAT(load_prompts(options, root_.string()).status().message(), HasSubstr("there are no prompts"));
  options.prompts = {"a"};
  EXPECT_THAT(*load_prompts(options, root_.string()), ElementsAre("a"));
  options.prompt_file = "x";
  EXPECT_THAT(load_prompts(options, root_.string()).status().message(), HasSubstr("exclude each other"));
}

TEST_F(Prompts, RelativePathsAreLookedUpInTheRepositoryOfTheCase) {
  const std::string name = "assay_only_in_the_repository.jsonl";
  std::ofstream(root_ / "repo" / name) << "{\"text\": \"a\"}\n";
  const std::string case_dir = (root_ / "repo/testcases/m/c").string();
  EXPECT_EQ(repository_root(case_dir), (root_ / "repo").string());
  EXPECT_EQ(*find_input(name, case_dir), (root_ / "repo" / name).string());
  EXPECT_EQ(*find_input("./" + name, case_dir), (root_ / "repo" / name).string());
  EXPECT_THAT(find_input("nowhere/x", case_dir).status().message(),
              HasSubstr("neither below the current directory nor as"));
  EXPECT_EQ(find_input("/nowhere/x", case_dir).status().code(), StatusCode::kNotFound);
  fs::create_directories(case_dir);
  std::ofstream(fs::path(case_dir) / "own.jsonl") << "{\"text\": \"a\"}\n";
  for (const std::string& dir : {case_dir, case_dir + "/"}) {
    const Result<std::string> own = find_input("./tests/elsewhere/c/own.jsonl", dir);
    ASSERT_TRUE(own.ok()) << own.status().message();
    EXPECT_TRUE(fs::equivalent(*own, fs::path(case_dir) / "own.jsonl"));
  }
  EXPECT_EQ(find_input("./tests/elsewhere/d/own.jsonl", case_dir).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(find_input("elsewhere/c/absent", case_dir).status().message(), HasSubstr(case_dir + "/absent"));
  fs::create_directories(root_ / "tree/tests/functional_tests/test_cases/m/c");
  EXPECT_EQ(repository_root((root_ / "tree/tests/functional_tests/test_cases/m/c").string()),
            (root_ / "tree").string());
}

TEST_F(Prompts, CheckpointStepsAreFolders) {
  fs::create_directories(root_ / "ck/iter_0000012");
  EngineOptions options;
  options.load = (root_ / "ck").string();
  EXPECT_EQ(*checkpoint_folder(options, root_.string()), options.load);
  options.checkpoint_step = 12;
  EXPECT_EQ(*checkpoint_folder(options, root_.string()), options.load + "/iter_0000012");
  options.checkpoint_step = 13;
  EXPECT_THAT(checkpoint_folder(options, root_.string()).status().message(), HasSubstr("iter_0000013 does not exist"));
}

TEST(Show, NamesArgumentsWithTheirClass) {
  const TestCase test_case =
      inference_case(std::string(kLeast) + "  --attention-backend: flash\n  --adam-beta1: 0.9\n");
  const auto parsed = read_arguments(test_case, {});
  ASSERT_TRUE(parsed.ok());
  const ShowInput input{.test_case = test_case, .arguments = &*parsed, .errors = {"e1"}};
  const std::string text = show_text(input);
  EXPECT_THAT(text, HasSubstr("arguments used (4)\n  --load c\n"));
  EXPECT_THAT(text, HasSubstr("--attention-backend flash                       done by our kernels"));
  EXPECT_THAT(text, HasSubstr("optimizer and learning rate"));
  EXPECT_THAT(text, HasSubstr("error: e1\n"));
  EXPECT_THAT(show_json(input), HasSubstr("\"class\": \"substituted\""));
  EXPECT_THAT(show_json({.test_case = test_case}), HasSubstr("\"arguments\": null"));
}

// The cases of the tree itself are ready to run.
TEST(EngineOptions, EveryCaseOfTheTreeResolves) {
  const std::string root = ASSAY_SOURCE_DIR;
  TestCase test_case;
  test_case.dir = root + "/testcases/moe/moe_10m_licences_bf16_b1";
  test_case.config = test_case.dir + "/model_config.yaml";
  std::ifstream file(test_case.config);
  read_config(std::string(std::istreambuf_iterator<char>(file), {}), test_case);
  ASSERT_TRUE(test_case.error.ok()) << test_case.error.message();
  const auto parsed = read_arguments(test_case, {.set = {{"INFERENCE_OUTPUT_PATH", "/tmp/o"}}, .environment = {}});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto options = resolve_engine_options(test_case, model::apply_checkpoint_args(parsed->record, nullptr));
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->max_requests, 1);
  EXPECT_EQ(options->tokens_to_generate, 80);
  EXPECT_TRUE(options->return_log_probs);
  EXPECT_THAT(options->notes, IsEmpty());
}

TEST(EngineOptions, ATemperatureMeansNothingToGreedyDecoding) {
  const auto options = resolve(std::string(kLeast) + "  --temperature: 0\n");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->temperature, 1.0) << "engines want a number above 0";
  EXPECT_THAT(options->notes, ElementsAre("--temperature 0 has no effect with --top_k 1"));
  EXPECT_THAT(failure(std::string(kLeast) + "  --temperature: nan\n"), HasSubstr("finite number"));
}

constexpr const char* kDynamic = "  --load: c\n  --tokenizer-type: TikTokenizer\n  --tokenizer-model: v.json\n";
constexpr const char* kScript = "ASSAY:\n  script: gpt_dynamic_inference.py\n";

TEST(EngineOptions, EverySpellingOfTheTokensOfAStepCounts) {
  for (const char* name : {"--inference-dynamic-batching-max-tokens", "--inference-max-tokens",
                           "--inference-dynamic-batching-max-tokens-override"}) {
    const auto options = resolve(std::string(kDynamic) + "  " + name + ": 77\n");
    ASSERT_TRUE(options.ok()) << options.status().message();
    EXPECT_EQ(options->buffered.max_tokens, 77) << name;
  }
  for (const char* name : {"--inference-dynamic-batching-max-requests", "--inference-max-requests",
                           "--inference-dynamic-batching-max-requests-override"}) {
    EXPECT_EQ(resolve(std::string(kDynamic) + "  " + name + ": 5\n" + kScript)->buffered.max_requests, 5) << name;
  }
  EXPECT_THAT(failure(std::string(kDynamic) + "  --inference-max-token: 77\n"), HasSubstr("--inference-max-token"));
}

TEST(EngineOptions, ArgumentsOfTheDynamicScriptCountThereAlone) {
  const std::string arguments =
      "  --output-every-n-results: 32\n  --suspend-resume-interval: 16\n"
      "  --rl-kv-cache-management-mode: recompute\n";
  const auto dynamic = resolve(kDynamic + arguments + kScript);
  ASSERT_TRUE(dynamic.ok()) << dynamic.status().message();
  EXPECT_EQ(dynamic->output_every, 32);
  EXPECT_EQ(dynamic->buffered.suspend_interval, 16);
  EXPECT_TRUE(dynamic->buffered.recompute_on_resume);
  const auto fixed = resolve(kDynamic + arguments);
  ASSERT_TRUE(fixed.ok()) << fixed.status().message();
  EXPECT_EQ(fixed->output_every, 1);
  EXPECT_EQ(fixed->buffered.suspend_interval, 0);
  EXPECT_THAT(fixed->notes, ::testing::Contains(HasSubstr("output_every_n_results has no effect")));
  const auto wrong = [](const std::string& more) { return failure(kDynamic + more + kScript); };
  EXPECT_THAT(wrong("  --output-every-n-results: 0\n"), HasSubstr("--output-every-n-results 0 is below 1"));
  EXPECT_THAT(wrong("  --suspend-resume-interval: 0\n"), HasSubstr("--suspend-resume-interval 0 is below 1"));
  EXPECT_THAT(wrong("  --num-tokens-from-file: true\n"), HasSubstr("--num-tokens-from-file: lengths of single"));
  EXPECT_EQ(failure(std::string(kDynamic) + "  --num-tokens-from-file: true\n"), "ok");
}

}  // namespace
}  // namespace assay::discover
