#include "core/discover/yaml_simple.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/discover/discover.h"
#include "core/discover/yaml_text.h"

namespace assay::discover {
namespace {

// Everything that a tree says, places included.
std::string with_places(const YamlNode& node) {
  std::string out = std::to_string(node.line) + ":" + std::to_string(node.column) + (node.plain ? " " : " quoted ");
  if (node.is_scalar()) return out + "<" + node.text + ">";
  for (const YamlNode* item : node.items) out += "[" + with_places(*item) + "]";
  for (const YamlEntry& entry : node.entries) {
    out += "{" + entry.key + "@" + std::to_string(entry.line) + ":" + std::to_string(entry.column) + "=" +
           (entry.value == nullptr ? "nothing" : with_places(*entry.value)) + "}";
  }
  return out;
}

std::string full(const std::string& text) {
  const auto tree = parse_yaml(text, "f", {.simple_first = false});
  if (!tree.ok()) return tree.status().message();
  return tree->root == nullptr ? "nothing" : with_places(*tree->root);
}

// The simple reader's tree, or "declined".
std::string simple(const std::string& text) {
  YamlTree tree;
  return read_simple_yaml(text, tree) ? with_places(*tree.root) : "declined";
}

TEST(YamlSimple, ReadsTheUsualFileAsTheFullParserDoes) {
  const std::string text =
      "# c\nENV_VARS:\n  A: 1 # c\n\n  CUBLAS_WORKSPACE_CONFIG: :4096:8\nTEST_TYPE: \"frozen start\"\nMODEL_ARGS: # c\n"
      "    --load: ${X}/y#z\n    --flag: true\n    --coeff: 1e-3\n    --id: -1\n    --p: 'it is: \"q\" # no \\n'\n"
      "METRICS:\n- a\n- \"b c\"\nMORE:\n   - d  # c\n   - 'e'\nLAST: x y  z\n";
  EXPECT_NE(simple(text), "declined");
  EXPECT_EQ(simple(text), full(text));
}

TEST(YamlSimple, DeclinesWhatNeedsTheFullParser) {
  for (const char* text : {"",
                           "a",
                           "a:\n",
                           "a: [b]\n",
                           "a: {b: c}\n",
                           "a: |\n  b\n",
                           "a: &x b\n",
                           "a: *x\n",
                           "<<: b\n",
                           "a: b\na: c\n",
                           "a: b\n  c\n",
                           "a: b: c\n",
                           "a: 'it''s'\n",
                           "a: \"\\n\"\n",
                           "a: \"b\n",
                           "a:b\n",
                           "- a\n",
                           "---\na: b\n",
                           "a: b\n---\nc: d\n",
                           "a: b\n...\n",
                           "a: b\n c: d\n",
                           " a: b\n",
                           "a:\n  b: c\n d: e\n",
                           "a:\n- b\n c: d\n",
                           "a: - b\n",
                           "a: -\n",
                           "a:\tb\n",
                           "a: !t b\n",
                           "? a\n",
                           "a:\n  - b: c\n",
                           "a:\n  - - b\n",
                           "a:\n  -\n",
                           "a: b:\n",
                           "%a: b\n",
                           "a: 'b' c\n",
                           "a: \"b\"#c\n",
                           "a: @b\n"}) {
    EXPECT_EQ(simple(text), "declined") << text;
  }
}

TEST(YamlSimple, AgreesWithTheFullParserWheneverItDoesNotDecline) {
  constexpr std::string_view kPieces[] = {"a",
                                          "--k",
                                          ":",
                                          ": ",
                                          " ",
                                          "  ",
                                          "\n",
                                          "\n  ",
                                          "\n    ",
                                          "- ",
                                          "-",
                                          "#",
                                          " # c",
                                          "'",
                                          "\"",
                                          "\\",
                                          "b c",
                                          "${V}",
                                          "(x)",
                                          "[",
                                          "]",
                                          "{",
                                          ",",
                                          "&x",
                                          "*x",
                                          "|",
                                          ">",
                                          "null",
                                          "~",
                                          "1e-3",
                                          "x:y",
                                          "\n- ",
                                          "\n  - ",
                                          ":\n",
                                          "a: b\n",
                                          "  c: d\n",
                                          "key:\n  in: ner\n",
                                          "---",
                                          "...",
                                          "%",
                                          "!",
                                          "?",
                                          "<<: ",
                                          "é",
                                          "$",
                                          "/"};
  constexpr std::string_view kFile =
      "a: 1 # c\nb:\n  --k: 'q'\n  --l: x y\n\nc:\n- d\n- \"e\"\n# c\nf:\n    - g\nh: i\n";
  std::mt19937 random(7);
  int compared = 0;
  for (int round = 0; round < 60000; ++round) {
    std::string text(round % 2 == 0 ? kFile : "a:");
    for (size_t i = 0, n = 1 + random() % 4; i < n; ++i) {
      const std::string_view piece = kPieces[random() % std::size(kPieces)];
      if (round % 2 == 0) {
        const size_t at = random() % text.size();  // one draw after the other: arguments have no order
        text.replace(at, random() % 3, piece);
      } else {
        text += piece;
      }
    }
    if (round % 3 != 0) text += "\n";
    if (Status usable = prepare_yaml_text(text, "f"); !usable.ok()) continue;  // neither reader gets such a text
    const std::string quick = simple(text);
    if (quick == "declined") continue;
    ++compared;
    ASSERT_EQ(quick, full(text)) << text;
  }
  EXPECT_GT(compared, 3000);
}

TEST(YamlSimple, TakesTheCasesOfTheTree) {
  const auto cases = discover({std::string(ASSAY_SOURCE_DIR) + "/testcases"});
  ASSERT_TRUE(cases.ok());
  ASSERT_FALSE(cases->empty());
  for (const TestCase& test_case : *cases) {
    const auto text = read_file(test_case.config, 1 << 20);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(simple(*text), full(*text)) << test_case.config;
  }
}

}  // namespace
}  // namespace assay::discover
