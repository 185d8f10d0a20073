#include "core/recipe/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/recipe/list.h"
#include "tests/unreadable_directories.h"

namespace assay::recipe {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CatalogueTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("recipe_" + std::to_string(getpid()));
    fs::remove_all(root_);
    write("tests/functional_tests/test_cases/gpt/one/model_config.yaml",
          "MODE: inference\nMETRICS: [generated_tokens]\nMODEL_ARGS:\n  --use-legacy-static-engine: true\n");
    write("tests/functional_tests/test_cases/gpt/one/golden_values_dev_dgx_h100.json", "{}");
    write("tests/functional_tests/test_cases/gpt/two/model_config.yaml",
          "MODE: inference\nMETRICS: [generated_tokens]\nMODEL_ARGS:\n  --a: 1\n");
    write("recipes/_build-a.yaml", build("mcore-dev", "registry/dev"));
    write("recipes/_build-b.yaml", build("mcore-lts", "registry/lts"));
    write("recipes/h100/static.yaml", recipe("gpt_static_inference.py", "[one]", "[dev]") +
                                          "  - test_case: [two]\n    products:\n      - environment: [lts, dev]\n"
                                          "        scope: [mr-github]\n        platforms: [dgx_a100]\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  static std::string build(const std::string& name, const std::string& image) {
    return "type: build\nformat_version: 1\nspec:\n  name: " + name + "\n  source: {image: " + image + "}\n";
  }

  static std::string recipe(const std::string& script, const std::string& names, const std::string& environments) {
    return "type: basic\nformat_version: 1\nspec:\n  name: '{test_case}_{environment}_{platforms}'\n  model: gpt\n"
           "  build: mcore-{environment}\n  script: |-\n"
           "    # TRAINING_SCRIPT_PATH=commented.py\n    ARGUMENTS=(\n"
           "      \"TRAINING_SCRIPT_PATH=examples/inference/advanced/" +
           script +
           "\"\n"
           "      \"TRAINING_PARAMS_PATH=./tests/functional_tests/test_cases/{model}/{test_case}/model_config.yaml\"\n"
           "      \"GOLDEN_VALUES_PATH=./tests/functional_tests/test_cases/{model}/{test_case}/"
           "golden_values_{environment}_{platforms}.json\"\n"
           "    )\n    bash run.sh ${{ARGUMENTS[@]}}\nproducts:\n  - test_case: " +
           names + "\n    products:\n      - environment: " + environments +
           "\n        scope: [mr, nightly]\n        platforms: [dgx_h100]\n";
  }

  Catalogue read(const CatalogueOptions& options = {}) const {
    auto catalogue = read_catalogue({(root_ / "recipes").string()}, options);
    EXPECT_TRUE(catalogue) << catalogue.status().message();
    return *std::move(catalogue);
  }

  static std::vector<std::string> names(const Catalogue& catalogue) {
    std::vector<std::string> all;
    for (const Entry& entry : catalogue.entries) all.push_back(entry.workload.name);
    return all;
  }

  static std::string findings(const Catalogue& catalogue) {
    std::string all;
    for (const Finding& finding : catalogue.findings) all += to_line(finding) + "\n";
    return all;
  }

  fs::path root_;
};

TEST_F(CatalogueTest, WorkloadsComeInTheOrderOfTheFilesAndTheirBuildsLast) {
  const Catalogue all = read();
  EXPECT_THAT(names(all), ElementsAre("one_dev_dgx_h100", "one_dev_dgx_h100", "two_lts_dgx_a100", "two_dev_dgx_a100",
                                      "mcore-dev", "mcore-lts"));
  EXPECT_EQ(all.entries[4].workload.spec["source"]["image"], "registry/dev:main");
  EXPECT_EQ(all.entries[5].workload.spec["source"]["image"], "registry/dev:main") << "as the ancestor's parser does it";
  EXPECT_THAT(findings(all), HasSubstr("build mcore-lts gets the image of build mcore-dev"));
  EXPECT_EQ(all.files, 3U);
  EXPECT_EQ(all.expanded, 4U);
}

TEST_F(CatalogueTest, FiltersCompareForEqualityAndScopesByEitherName) {
  EXPECT_THAT(names(read({.query = {.scope = "nightly"}})), ElementsAre("one_dev_dgx_h100", "mcore-dev"));
  EXPECT_THAT(names(read({.query = {.scope = "L2"}})), ElementsAre("one_dev_dgx_h100", "mcore-dev"));
  EXPECT_THAT(names(read({.query = {.cadence = "pr", .test_case = "one"}})),
              ElementsAre("one_dev_dgx_h100", "mcore-dev"));
  EXPECT_THAT(names(read({.query = {.environment = "lts"}})), ElementsAre("two_lts_dgx_a100", "mcore-lts"));
  EXPECT_THAT(names(read({.query = {.platform = "dgx_a100", .test_case = "x,two"}})),
              ElementsAre("two_lts_dgx_a100", "two_dev_dgx_a100", "mcore-lts", "mcore-dev"));
  EXPECT_THAT(names(read({.query = {.model = "gp"}})), ElementsAre());
  EXPECT_THAT(names(read({.query = {.tag = "latest"}})), ElementsAre()) << "a workload without a tag has none";
  EXPECT_EQ(read({.query = {.test_case = "all"}}).entries.size(), 6U);
}

TEST_F(CatalogueTest, TheFlavourComesFromTheScriptAndTheCase) {
  const Catalogue all = read();
  EXPECT_EQ(all.entries[0].flavour, "static-legacy");
  EXPECT_EQ(all.entries[2].flavour, "static-dyn");
  EXPECT_EQ(fs::path(all.entries[0].case_dir),
            fs::weakly_canonical(root_) / "tests/functional_tests/test_cases/gpt/one");
  ASSERT_TRUE(all.entries[0].test);
  EXPECT_EQ(all.entries[0].test->mode, "inference");
}

TEST_F(CatalogueTest, CasesAndGoldensThatDoNotExistAreNamed) {
  write("recipes/z.yaml", recipe("gpt_dynamic_inference.py", "[three]", "[dev]"));
  const std::string found = findings(read());
  EXPECT_THAT(found, HasSubstr("warning: golden of two does not exist: no " + fs::weakly_canonical(root_).string()));
  EXPECT_THAT(found, HasSubstr("warning: case three does not exist: no "));
  EXPECT_THAT(found, HasSubstr("golden_values_lts_dgx_a100.json"));
  EXPECT_EQ(found.find("golden of one"), std::string::npos);
}

TEST_F(CatalogueTest, AWorkloadThatIsThereTwiceIsNamed) {
  write("recipes/z.yaml", recipe("gpt_static_inference.py", "[one]", "[dev]"));
  EXPECT_THAT(findings(read()), HasSubstr("workload one_dev_dgx_h100 is there already, from "));
}

TEST_F(CatalogueTest, JsonHoldsTheSpecWithNameAndScriptFilledIn) {
  const Value json = Value::parse(list_json(read({.query = {.scope = "mr"}, .folders = {"/x", "/y"}})));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["name"], "one_dev_dgx_h100");
  EXPECT_EQ(json[0]["flavour"], "static-legacy");
  EXPECT_EQ(json[0]["cadence"], Value::parse(R"(["pr","nightly","mergegroup"])"));
  EXPECT_THAT(json[0]["script"].get<std::string>(), HasSubstr("bash run.sh ${ARGUMENTS[@]}"));
  EXPECT_TRUE(json[0]["error"].is_null());
  EXPECT_EQ(json[1]["type"], "build");
  EXPECT_THAT(list_text(read()), HasSubstr("4 workloads of 4 in 3 recipes, 2 builds"));
}

TEST_F(CatalogueTest, AFileIsReadOnceHoweverItIsReached) {
  const std::string file = (root_ / "recipes/h100/static.yaml").string();
  const auto catalogue = read_catalogue({file, (root_ / "recipes/h100").string(), file}, {});
  ASSERT_TRUE(catalogue);
  EXPECT_EQ(catalogue->files, 1U);
  EXPECT_EQ(read_catalogue({(root_ / "nowhere").string()}, {}).status().code(), StatusCode::kNotFound);
}

TEST_F(CatalogueTest, LinksInALoopAreWalkedOnce) {
  // Two of them make 2^40 paths of what is one folder.
  fs::create_directory_symlink(".", root_ / "recipes/h100/a");
  fs::create_directory_symlink(".", root_ / "recipes/h100/b");
  fs::create_directory_symlink("h100", root_ / "recipes/other");
  EXPECT_EQ(read().files, 3U);
  const auto once = read_catalogue({(root_ / "recipes/h100").string()}, {});
  ASSERT_TRUE(once) << once.status().message();
  EXPECT_EQ(once->files, 1U);
}

TEST_F(CatalogueTest, LinksThatCannotBeFollowedAreToldOf) {
  fs::create_directory_symlink("../..", root_ / "recipes/h100/up");
  const auto high = read_catalogue({(root_ / "recipes").string()}, {});
  EXPECT_THAT(high.status().message(), HasSubstr("recipes/h100/up: leads to a folder above "));
  fs::remove(root_ / "recipes/h100/up");
  fs::create_symlink("nowhere", root_ / "recipes/h100/gone");
  EXPECT_EQ(read().files, 3U) << "it is no recipe";
  fs::create_symlink("nowhere", root_ / "recipes/h100/gone.yaml");
  EXPECT_THAT(findings(read()), HasSubstr("gone.yaml: cannot be opened"));
  fs::create_symlink(std::string(300, 'x'), root_ / "recipes/h100/long");
  EXPECT_EQ(read_catalogue({(root_ / "recipes").string()}, {}).status().code(), StatusCode::kInfra);
}

TEST_F(CatalogueTest, AFolderThatCannotBeReadIsNotTakenForAnEmptyOne) {
  const auto seen = tests::with_unreadable_directories(
      [this] { return read_catalogue({(root_ / "recipes").string()}, {}).status().message(); });
  if (!seen) GTEST_SKIP() << "this kernel filters no system calls";
  EXPECT_THAT(*seen, HasSubstr("recipes: cannot be searched for recipes: Input/output error"));
}

TEST(Script, WordsAreThoseOfTheLastLineThatIsNoComment) {
  const ScriptWords words = script_words(
      "# TRAINING_SCRIPT_PATH=a.py\nXTRAINING_SCRIPT_PATH=b.py\n"
      "\"TRAINING_SCRIPT_PATH=\\\"nemo llm pretrain -y\\\"\"\nTRAINING_PARAMS_PATH='x y.yaml' "
      "GOLDEN_VALUES_PATH=g.json\n");
  EXPECT_EQ(words.training_script, "nemo llm pretrain -y");
  EXPECT_EQ(words.params, "x y.yaml");
  EXPECT_EQ(words.golden, "g.json");
}

TEST(Script, FlavoursAreThoseOfMegatron) {
  const auto flavour = [](const std::string& path, const std::string& args = "") {
    TestCase test;
    test.mode = "inference";
    for (size_t at = 0; at < args.size();) {
      const size_t end = std::min(args.find(' ', at), args.size());
      test.model_args.entries.push_back({.key = args.substr(at, end - at), .text = "true", .items = {}, .place = {}});
      at = end + 1;
    }
    ScriptWords words;
    words.training_script = path;
    return flavour_of(words, "", &test);
  };
  EXPECT_EQ(flavour("a/gpt_static_inference.py", "--use-legacy-static-engine"), "static-legacy");
  EXPECT_EQ(flavour("a/gpt_static_inference.py"), "static-dyn");
  EXPECT_EQ(flavour("a/gpt_dynamic_inference.py"), "dynamic");
  EXPECT_EQ(flavour("a/gpt_dynamic_inference_with_coordinator.py"), "dyn+coord");
  EXPECT_EQ(flavour("examples/inference/offline_inference.py"), "api-sync");
  EXPECT_EQ(flavour("examples/inference/offline_inference.py", "--async-mode --use-coordinator"), "api-async+coord");
  EXPECT_EQ(flavour("pretrain_gpt.py"), "pretraining");
  EXPECT_EQ(flavour("examples/mimo/train.py"), "pretraining");
  EXPECT_EQ(flavour("train_rl.py"), "rl");
  EXPECT_EQ(flavour("nemo llm pretrain -y --factory x"), "nemo");
  EXPECT_EQ(flavour_of({}, "bash tests/unit_tests/run_ci_test.sh", nullptr), "unit-tests");
  EXPECT_EQ(flavour_of({}, "python x/serve_smoke.py", nullptr), "server");
}

}  // namespace
}  // namespace assay::recipe
