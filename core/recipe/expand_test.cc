#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/recipe/recipe.h"

namespace assay::recipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kHead = R"(type: basic
format_version: 1
maintainers: [mcore]
loggers: [stdout]
spec:
  name: '{test_case}_{environment}_{platforms}'
  model: gpt
  build: mcore-pyt-{environment}
  nodes: 1
  gpus: 8
  platforms: dgx_a100
  script: |-
    echo "${{HOME}}" {name} {assets_dir} {gpus} {n_repeat}
)";

Recipe read(const std::string& text) {
  return expand(text, "r.yaml", {.assets = "/assets", .artifacts = "/artifacts"});
}

Recipe with_products(const std::string& products) { return read(std::string(kHead) + "products:\n" + products); }

std::vector<std::string> rows(const Recipe& recipe, const std::vector<const char*>& keys) {
  std::vector<std::string> all;
  for (const Workload& work : recipe.workloads) {
    std::string row;
    for (const char* key : keys) row += (row.empty() ? "" : " ") + work.text(key);
    all.push_back(row);
  }
  return all;
}

std::string findings(const Recipe& recipe) {
  std::string all;
  for (const Finding& finding : recipe.findings) all += to_line(finding) + "\n";
  return all;
}

TEST(Expand, TheLastKeyMovesFastest) {
  const Recipe recipe = with_products(
      "  - test_case: [one]\n    products:\n      - environment: [dev, lts]\n        scope: [mr, mr-slim]\n"
      "        platforms: [dgx_h100, dgx_a100]\n");
  EXPECT_THAT(rows(recipe, {"environment", "scope", "platforms"}),
              ElementsAre("dev mr dgx_h100", "dev mr dgx_a100", "dev mr-slim dgx_h100", "dev mr-slim dgx_a100",
                          "lts mr dgx_h100", "lts mr dgx_a100", "lts mr-slim dgx_h100", "lts mr-slim dgx_a100"));
  EXPECT_EQ(findings(recipe), "");
  const Workload& first = recipe.workloads[0];
  EXPECT_EQ(first.name, "one_dev_dgx_h100");
  EXPECT_EQ(first.text("build"), "mcore-pyt-dev");
  EXPECT_EQ(first.script, "echo \"${HOME}\" one_dev_dgx_h100 /assets 8 1");
  EXPECT_EQ(first.line, 17);
  EXPECT_EQ(first.column, 9);
}

TEST(Expand, KeysOfAProductStandInForThoseOfTheSpec) {
  const Recipe recipe = with_products(
      "  - test_case: [one]\n    products:\n      - environment: [dev]\n        gpus: [1, 2]\n        n_repeat: [5]\n"
      "        time_limit: [90]\n        tag: [latest]\n");
  EXPECT_THAT(rows(recipe, {"gpus", "n_repeat", "time_limit", "tag", "platforms", "model"}),
              ElementsAre("1 5 90 latest dgx_a100 gpt", "2 5 90 latest dgx_a100 gpt"));
  EXPECT_TRUE(recipe.workloads[0].own_repeat);
  EXPECT_TRUE(recipe.workloads[0].own_time_limit);
}

TEST(Expand, WhatARecipeDoesNotSayHasTheParsersDefaults) {
  const Recipe recipe = with_products("  - test_case: [one]\n    products:\n      - environment: [dev]\n");
  EXPECT_THAT(rows(recipe, {"n_repeat", "time_limit", "artifacts", "cadence"}),
              ElementsAre("1 1800 {} ['pr', 'nightly', 'mergegroup']"));
  EXPECT_FALSE(recipe.workloads[0].own_repeat);
  EXPECT_FALSE(recipe.workloads[0].own_time_limit);
}

TEST(Expand, AliasesOfScopesBringTheirCadenceUnlessOneIsGiven) {
  const std::string product =
      "      - environment: [dev]\n        scope: [mr, mr-github-slim, mr-github, nightly, weekly, nightly-broken]\n";
  EXPECT_THAT(rows(with_products("  - test_case: [one]\n    products:\n" + product), {"scope", "cadence"}),
              ElementsAre("mr ['pr', 'nightly', 'mergegroup']", "L0 ['pr', 'nightly', 'mergegroup']",
                          "L1 ['pr', 'nightly', 'mergegroup']", "L2 ['nightly']", "L3 ['weekly']",
                          "nightly-broken ['pr', 'nightly', 'mergegroup']"));
  const Recipe outer = with_products("  - test_case: [one]\n    cadence: [pr, weekly]\n    products:\n" + product);
  EXPECT_THAT(rows(outer, {"cadence"})[3], "['pr', 'weekly']");
  const Recipe inner = with_products("  - test_case: [one]\n    cadence: [pr, weekly]\n    products:\n" + product +
                                     "        cadence: [mergegroup]\n");
  EXPECT_EQ(inner.workloads.size(), 6U) << "cadence is no dimension";
  EXPECT_THAT(rows(inner, {"cadence"})[3], "['mergegroup']");
}

TEST(Expand, ArtifactsGetThePlatform) {
  std::string head = kHead;
  head.insert(head.find("  script:"), "  artifacts:\n    /mnt: text/{platforms}/{platforms}.bin\n");
  const Recipe recipe = read(
      head +
      "products:\n  - test_case: [one]\n    products:\n      - environment: [dev]\n        platforms: [dgx_h100]\n");
  EXPECT_THAT(rows(recipe, {"artifacts"}), ElementsAre("{'/mnt': 'text/dgx_h100/dgx_h100.bin'}"));
}

TEST(Expand, BuildsAreReadFromFilesOfTheirName) {
  const std::string text = "type: build\nformat_version: 1\nspec:\n  name: mcore\n  source: {image: registry/x}\n";
  const Recipe build = expand(text, "recipes/_build-x.yaml", {});
  ASSERT_TRUE(build.build);
  EXPECT_EQ(build.build->name, "mcore");
  EXPECT_EQ(findings(build), "");
  const Recipe other = expand(text, "recipes/x.yaml", {});
  EXPECT_FALSE(other.build);
  EXPECT_THAT(findings(other), HasSubstr("recipes/x.yaml:1:7: warning: type is build, but"));
}

struct Mistake {
  const char* products;
  const char* line;      // that is found
  size_t workloads = 0;  // that are left
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreReportedWithTheirPlace) {
  const Recipe recipe = with_products(GetParam().products);
  EXPECT_THAT(findings(recipe), HasSubstr(GetParam().line));
  EXPECT_EQ(recipe.workloads.size(), GetParam().workloads) << findings(recipe);
}

INSTANTIATE_TEST_SUITE_P(
    Warnings, Mistakes,
    testing::Values(
        Mistake{"  - test_case: [one]\n    products:\n      - scope: mr\n        environment: [dev]\n",
                "r.yaml:17:16: warning: scope \"mr\" is a string where a list belongs (Megatron-LM's parser expands it "
                "letter by letter)",
                1},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        n_repeat: 3\n",
                "r.yaml:18:19: warning: n_repeat \"3\" is a single value where a list belongs (Megatron-LM's parser "
                "refuses it)",
                1},
        Mistake{"  - test_case: one\n    products:\n      - environment: [dev]\n",
                "r.yaml:15:16: warning: test_case \"one\" is a string where a list belongs", 1},
        Mistake{"  - test_case: [one, two]\n    products:\n      - environment: [dev]\n",
                "r.yaml:15:22: warning: test_case \"two\" is dropped", 1},
        Mistake{"  - test_case: [one]\n  - test_case: [two]\n    products:\n      - environment: [dev]\n",
                "r.yaml:15:5: warning: item without products is ignored", 1},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        platforms: [dg  x_h100]\n",
                "r.yaml:18:21: warning: platform \"dg  x_h100\" is not a known one (did you mean 'dgx_h100'?)", 1},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        scope: [nightli]\n",
                "r.yaml:18:17: warning: scope \"nightli\" is not a known one (did you mean 'nightly'?)", 1},
        Mistake{"  - test_case: [one]\n    tag: [x]\n    products:\n      - environment: [dev]\n",
                "r.yaml:16:5: warning: key \"tag\" beside test_case is ignored", 1},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        platfroms: [dgx_h100]\n",
                "r.yaml:18:9: warning: key \"platfroms\" is unknown (did you mean 'platforms'?)", 1},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        scope: []\n",
                "r.yaml:18:16: warning: \"scope\" is an empty list", 0},
        Mistake{"  - test_case: [one]\n    cadence: nightly\n    products:\n      - environment: [dev]\n",
                "r.yaml:16:14: warning: cadence \"nightly\" is a string where a list belongs", 1},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        environment: [lts]\n",
                "r.yaml:18:1: warning: key \"environment\" was given in line 17 already", 1},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        gpus: [many]\n",
                "warning: gpus is 'many': a whole number from 0 is expected", 1}));

INSTANTIATE_TEST_SUITE_P(
    Errors, Mistakes,
    testing::Values(
        Mistake{"  - test_case: [one]\n    products:\n      - environment: [dev]\n        cadence: [hourly]\n",
                "r.yaml:18:19: error: cadence \"hourly\" is not one of pr, nightly, mergegroup, weekly", 0},
        Mistake{"  - products:\n      - environment: [dev]\n",
                "r.yaml:15:5: error: item with products but without test_case", 0},
        Mistake{"  - test_case: []\n    products:\n      - environment: [dev]\n", "error: test_case is empty", 0},
        Mistake{"  - test_case: [one]\n    products:\n      - environment:\n", "error: \"environment\" is nothing", 0},
        Mistake{"  - test_case: [one]\n    products:\n      - environment: {dev: 1}\n", "\"environment\" is a mapping",
                0},
        Mistake{"  - test_case: [one]\n    products: [dev]\n", "error: a product of \"one\" is a single value", 0},
        Mistake{"  - test_case: [one]\n    products: dev\n", "error: products of \"one\" is a single value", 0},
        Mistake{"  - one\n", "r.yaml:15:5: error: products holds a single value", 0},
        Mistake{"  one: [two]\n", "error: products is a mapping", 0},
        Mistake{"  - test_case: [one]\n    products:\n      - scope: [mr]\n",
                "error: build of one: field \"{environment}\": there is no 'environment'", 1}));

TEST(Expand, AWorkloadWhoseTemplateIsWrongIsListedWithItsError) {
  std::string head = kHead;
  head.replace(head.find("{assets_dir}"), 12, "${HOME}");
  const Recipe recipe = read(head + "products:\n  - test_case: [one]\n    products:\n      - environment: [dev]\n");
  ASSERT_EQ(recipe.workloads.size(), 1U);
  EXPECT_THAT(recipe.workloads[0].error.message(), HasSubstr("r.yaml:12:11: script of one: field \"{HOME}\""));
  EXPECT_EQ(recipe.workloads[0].script, "");
  EXPECT_EQ(recipe.workloads[0].name, "one_dev_dgx_a100");
}

TEST(Expand, ScalarsAreThoseOfYaml11) {
  const Recipe recipe = with_products(
      "  - test_case: [one]\n    products:\n      - environment: [dev]\n"
      "        tag: [yes, 'yes', 0x1F, 017, 1_000, 1e3, 1.0e+3, 1:30, ~, .inf, 0b11, 08, -5, 1.5, .5, -.5]\n");
  EXPECT_THAT(rows(recipe, {"tag"}), ElementsAre("True", "yes", "31", "15", "1000", "1e3", "1000.0", "90", "", "inf",
                                                 "3", "08", "-5", "1.5", "0.5", "-.5"));
}

TEST(Expand, FilesThatAreNoRecipeAreOneError) {
  for (const auto& [text, line] : std::vector<std::pair<std::string, std::string>>{
           {"", "r.yaml: error: the recipe is empty"},
           {"- a\n", "r.yaml:1:1: error: a recipe is a mapping"},
           {"type: basic\n", "error: spec is missing"},
           {"type: basic\nspec: [a]\n", "r.yaml:2:7: error: spec is no mapping"},
           {"a: &x [*x]\n", "r.yaml:1:"},
           {"a: [b\n", "error:"},
           {"a: \"\xff\"\n", "r.yaml:1:5: error: byte 0xff is not valid UTF-8"}}) {
    const Recipe recipe = read(text);
    EXPECT_THAT(findings(recipe), HasSubstr(line)) << text;
    EXPECT_THAT(recipe.workloads, IsEmpty());
  }
}

TEST(Expand, AProductWithoutBoundIsCutOffWithAnError) {
  std::string products = "  - test_case: [one]\n    products:\n      - environment: [dev]\n";
  for (char key = 'a'; key < 'h'; ++key)
    products += std::string("        ") + key + ": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  const Recipe recipe = with_products(products);
  EXPECT_LE(recipe.workloads.size(), kMostWorkloads);
  EXPECT_THAT(findings(recipe), HasSubstr("the rest is left out"));
}

// What templates make of a small spec counts, too: name, build, script and artifacts.
TEST(Expand, TextThatTemplatesMultiplyIsCutOffWithAnError) {
  constexpr int kFields = 1000;
  std::string fields;
  for (int i = 0; i < kFields; ++i) fields += "{a}";
  std::string platforms;
  for (int i = 0; i < kFields; ++i) platforms += "{platforms}";
  const std::string bytes(2000, 'a');
  std::string keys;
  for (char key = 'k'; key < 'm'; ++key) {
    keys += std::string("        ") + key + ": [1";
    for (int i = 0; i < 50; ++i) keys += ", 1";
    keys += "]\n";
  }
  for (const std::string& text :
       {"name: '" + fields + "'", "name: n\n  build: '" + fields + "'", "name: n\n  script: '" + fields + "'",
        "name: n\n  platforms: " + bytes + "\n  artifacts: {x: '" + platforms + "'}"}) {
    const Recipe recipe = read("type: basic\nformat_version: 1\nspec:\n  a: " + bytes + "\n  model: m\n  " + text +
                               "\nproducts:\n  - test_case: [one]\n    products:\n      - environment: [dev]\n" + keys);
    EXPECT_GT(recipe.workloads.size(), 10U) << text.substr(0, 40);
    EXPECT_LT(recipe.workloads.size(), 200U) << "each of them is 2 MB: " << text.substr(0, 40);
    EXPECT_THAT(findings(recipe), HasSubstr("the rest is left out"));
  }
}

TEST(Expand, OneArtifactThatIsTooLongIsRefused) {
  std::string head = kHead;
  std::string platforms;
  for (int i = 0; i < 10'000; ++i) platforms += "{platforms}";
  head.replace(head.find("dgx_a100"), 8, std::string(2000, 'p'));
  head.insert(head.find("  script:"), "  artifacts:\n    /mnt: '" + platforms + "'\n");
  const Recipe recipe = read(head + "products:\n  - test_case: [one]\n    products:\n      - environment: [dev]\n");
  ASSERT_EQ(recipe.workloads.size(), 1U);
  EXPECT_THAT(recipe.workloads[0].error.message(), HasSubstr("artifacts: \"/mnt\" becomes longer than 16777216 bytes"));
}

TEST(Expand, ABombOfAliasesIsRefused) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) text += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    text += "]\n";
  }
  EXPECT_THAT(findings(read(text)), HasSubstr("error:"));
}

}  // namespace
}  // namespace assay::recipe
