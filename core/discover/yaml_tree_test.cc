#include "core/discover/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::discover {
namespace {

using ::testing::HasSubstr;

// The tree as text: scalars in «», plain ones without; lists in [], maps in {} in their order.
std::string as_text(const YamlNode& node) {
  std::string out;
  switch (node.kind) {
    case YamlNode::Kind::kScalar:
      return node.plain ? node.text : "«" + node.text + "»";
    case YamlNode::Kind::kSequence:
      for (const YamlNode* item : node.items) out += (out.empty() ? "" : ",") + as_text(*item);
      return "[" + out + "]";
    case YamlNode::Kind::kMap:
      for (const YamlEntry& entry : node.entries)
        out += (out.empty() ? "" : ",") + entry.key + ":" + as_text(*entry.value);
      break;
  }
  return "{" + out + "}";
}

std::string tree_of(const std::string& text, const YamlLimits& limits = {}) {
  const Result<YamlTree> tree = parse_yaml(text, "f", limits);
  if (!tree.ok()) return tree.status().message();
  return tree->root == nullptr ? "nothing" : as_text(*tree->root);
}

TEST(YamlTree, KeepsTheSpellingOfScalars) {
  EXPECT_EQ(tree_of("a: 1e-3\nb: 0x10\nc: 1_000\nd: yes\ne: :4096:8\nf: ${X}/y\ng: -1\nh: 3600000\n"),
            "{a:1e-3,b:0x10,c:1_000,d:yes,e::4096:8,f:${X}/y,g:-1,h:3600000}");
}

TEST(YamlTree, TellsQuotedFromPlain) {
  EXPECT_EQ(tree_of("a: 'true'\nb: \"1\"\nc: true\n"), "{a:«true»,b:«1»,c:true}");
}

TEST(YamlTree, KeepsTheSpellingOfNulls) {
  EXPECT_EQ(tree_of("a: null\nb: ~\nc:\nd: Null\ne: NULL\nf:\nnull: x\n~: y\ng: ''\n"),
            "{a:null,b:~,c:,d:Null,e:NULL,f:,null:x,~:y,g:«»}");
  const Result<YamlTree> tree = parse_yaml("a: null\nb:\nc: ''\n", "f");
  EXPECT_TRUE(tree->root->find("a")->is_null());
  EXPECT_TRUE(tree->root->find("b")->is_null());
  EXPECT_FALSE(tree->root->find("c")->is_null());
}

TEST(YamlTree, FoldsAndKeepsBlocksLikePyYaml) {
  EXPECT_EQ(tree_of("a: |\n  x\n   y\n\n  z\n\n"), "{a:«x\n y\n\nz\n»}");
  EXPECT_EQ(tree_of("a: |-\n  x\n  y\n"), "{a:«x\ny»}");
  EXPECT_EQ(tree_of("a: |+\n  x\n\n"), "{a:«x\n\n»}");
  EXPECT_EQ(tree_of("a: >\n  x\n  y\n\n  z\n   k\n  l\n"), "{a:«x y\nz\n k\nl\n»}");
  EXPECT_EQ(tree_of("a:\n  b\n  c\n\n  d\n"), "{a:b c\nd}");
}

TEST(YamlTree, UnquotesLikePyYaml) {
  EXPECT_EQ(tree_of("a: 'it''s'\n"), "{a:«it's»}");
  EXPECT_EQ(tree_of("a: \"x\\n\\ty\\u00e9\\x41\\\\\"\n"), "{a:«x\n\tyéA\\»}");
  EXPECT_EQ(tree_of("a: 'x\\ny'\n"), "{a:«x\\ny»}");
  EXPECT_EQ(tree_of("a: \"x\n  y\n\n  z\"\n"), "{a:«x y\nz»}");
}

TEST(YamlTree, ReadsFlowLists) {
  EXPECT_EQ(tree_of("a: [b, \"c d\", e f]\nb: {c: d, e: [f]}\n"), "{a:[b,«c d»,e f],b:{c:d,e:[f]}}");
}

TEST(YamlTree, LastOfDuplicateKeysWinsAtTheFirstPosition) {
  const Result<YamlTree> tree = parse_yaml("a: 1\nb: 2\na: 3\n", "f");
  ASSERT_TRUE(tree.ok());
  EXPECT_EQ(as_text(*tree->root), "{a:3,b:2}");
  ASSERT_EQ(tree->duplicates.size(), 1u);
  EXPECT_EQ(tree->duplicates[0].key, "a");
  EXPECT_EQ(tree->duplicates[0].first_line, 1);
  EXPECT_EQ(tree->duplicates[0].line, 3);
}

TEST(YamlTree, MergesBeforeOwnKeysAndOwnKeysWin) {
  EXPECT_EQ(tree_of("x: &x {b: 1, c: 2}\nd:\n  a: 0\n  <<: *x\n  b: 3\n"), "{x:{b:1,c:2},d:{b:3,c:2,a:0}}");
  const Result<YamlTree> tree = parse_yaml("x: &x {b: 1}\nd:\n  <<: *x\n  b: 3\n", "f");
  EXPECT_TRUE(tree->duplicates.empty());
}

TEST(YamlTree, EarlierMappingOfAMergeListWins) {
  EXPECT_EQ(tree_of("x: &x {b: 1}\ny: &y {b: 2, c: 3}\nd:\n  <<: [*x, *y]\n"), "{x:{b:1},y:{b:2,c:3},d:{b:1,c:3}}");
}

TEST(YamlTree, AQuotedMergeKeyIsAnOrdinaryKey) { EXPECT_EQ(tree_of("'<<': {a: b}\n"), "{<<:{a:b}}"); }

TEST(YamlTree, RefusesAMergeOfAScalar) {
  EXPECT_THAT(tree_of("a:\n  <<: b\n"), HasSubstr("f:2:7: `<<` needs a mapping"));
}

TEST(YamlTree, KnowsLineAndColumnOfEveryNode) {
  const Result<YamlTree> tree = parse_yaml("a:\n  bb: c\n  d: 'e'\n", "f");
  const YamlEntry& first = tree->root->entries[0].value->entries[0];
  EXPECT_EQ(first.line, 2);
  EXPECT_EQ(first.column, 3);
  EXPECT_EQ(first.value->line, 2);
  EXPECT_EQ(first.value->column, 7);
  EXPECT_EQ(tree->root->find("a")->find("d")->column, 6);
}

TEST(YamlTree, ReadsCrLfAndByteOrderMarks) {
  EXPECT_EQ(tree_of("\xef\xbb\xbf"
                    "a: b\r\nc: |\r\n  d\r\n  e\r\n"),
            "{a:b,c:«d\ne\n»}");
}

TEST(YamlTree, RefusesBrokenTextWithLineAndColumn) {
  EXPECT_EQ(tree_of("a: \"b\nc: d\n"), "f:1:4: the quote \" opened here is never closed");
  EXPECT_EQ(tree_of("a:\n  b: 'c''\n"), "f:2:6: the quote ' opened here is never closed");
  EXPECT_EQ(tree_of("a: b\nc\n"), "f:2:1: 'c' has no colon behind it");
  EXPECT_THAT(tree_of("a: b\n  c: d\n"), HasSubstr("f:2:4: "));
  EXPECT_THAT(tree_of("a: [b, c\nd: e\n"), HasSubstr("f:2:"));
  EXPECT_THAT(tree_of("a: b\n]\n"), HasSubstr("f:2:1: "));
  EXPECT_THAT(tree_of("\ta: b\n"), HasSubstr("f:1:"));
  EXPECT_THAT(tree_of("a:\n\tb: c\n"), HasSubstr("f:2:"));
  EXPECT_THAT(tree_of("a:\n  --x: 1\n --y: 2\n"), HasSubstr("f:3:"));
  EXPECT_THAT(tree_of("a: @b\n"), HasSubstr("f:1:4: "));
  EXPECT_THAT(tree_of("a: [b,,c]\n"), HasSubstr("missing here"));
  EXPECT_THAT(tree_of("a: b\n: c\n"), HasSubstr("missing here"));
  EXPECT_THAT(tree_of("a: \"\\q\"\n"), HasSubstr("f:1:"));
}

TEST(YamlTree, RefusesASecondDocument) { EXPECT_THAT(tree_of("a: b\n---\nc: d\n"), HasSubstr("second document")); }

TEST(YamlTree, AcceptsOneMarkedDocument) { EXPECT_EQ(tree_of("---\na: b\n...\n"), "{a:b}"); }

TEST(YamlTree, RefusesUnknownAndCyclicAliases) {
  EXPECT_THAT(tree_of("a: *x\n"), HasSubstr("f:1:4: "));
  EXPECT_THAT(tree_of("a: &x [*x]\n"), HasSubstr("f:1:8: alias of a node that contains it"));
}

TEST(YamlTree, RefusesABillionLaughs) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias;
    for (int k = 1; k < 10; ++k) text += "," + alias;
    text += "]\n";
  }
  EXPECT_THAT(tree_of(text), HasSubstr("more than 100000 nodes once aliases are expanded"));
}

// Few nodes, much text: each alias, and each key that a merge copies, costs its bytes again.
TEST(YamlTree, RefusesTextThatAliasesMultiply) {
  const std::string bytes(1000, 'b');
  const YamlLimits limits{.expanded_bytes = 20'000};
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::string refused = "more than 20000 bytes of text once aliases are expanded";
  const std::string value = "s: &x \"" + bytes + "\"\n";
  const std::string map = "s: &x {" + bytes + ": 1}\n";
  EXPECT_THAT(tree_of(value + "m: [" + repeated("*x,", 30) + "]\n", limits), HasSubstr(refused));
  EXPECT_THAT(tree_of(value + "m: {" + repeated("a: *x, ", 30) + "}\n", limits), HasSubstr(refused));
  EXPECT_THAT(tree_of(map + "m:\n" + repeated("  - <<: *x\n", 30), limits), HasSubstr(refused));
  EXPECT_THAT(tree_of(map + "m: " + repeated("{a: {<<: *x}, c: ", 30) + "1" + repeated("}", 30) + "\n", limits),
              HasSubstr(refused))
      << "of mappings that are open all at once";
  EXPECT_THAT(tree_of(value + "n: &n [*x,*x,*x,*x,*x,*x]\nm: [*n,*n,*n,*n]\n", limits), HasSubstr(refused));
  EXPECT_THAT(tree_of(value + "m: [" + repeated("*x,", 15) + "]\n", limits), HasSubstr("«bbb"));
  EXPECT_THAT(tree_of("a: &x \"" + std::string(100'000, 'b') + "\"\nb: [" + repeated("*x,", 40'000) + "]\n"),
              HasSubstr("f:2:"))
      << "within the limits that are usual";
}

TEST(YamlTree, RefusesDeepNesting) {
  EXPECT_THAT(tree_of("a: " + std::string(100000, '[')), HasSubstr("f:1:"));
  std::string steps;
  for (int i = 0; i < 500; ++i) steps += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(tree_of(steps), HasSubstr("nested deeper than 64"));
  std::string chain = "a0: &a0 [x]\n";
  for (int i = 1; i < 200; ++i) {
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(tree_of(chain), HasSubstr("nested deeper than 64"));
}

TEST(YamlTree, RefusesBytesThatAreNoYamlText) {
  EXPECT_EQ(tree_of("a: b\nc: \xff\n"), "f:2:4: byte 0xff is not valid UTF-8: save the file as UTF-8");
  EXPECT_EQ(tree_of("a: \xed\xa0\x80\n"), "f:1:4: byte 0xed is not valid UTF-8: save the file as UTF-8");
  EXPECT_EQ(tree_of("a: \xc0\xaf\n"), "f:1:4: byte 0xc0 is not valid UTF-8: save the file as UTF-8");
  EXPECT_EQ(tree_of(std::string("a: b\0c\n", 7)), "f:1:5: character U+0000 is not allowed in YAML");
  EXPECT_EQ(tree_of("a: b\x04"
                    "c\n"),
            "f:1:5: character U+0004 is not allowed in YAML");
  EXPECT_THAT(tree_of("\xff\xfe"
                      "a"),
              HasSubstr("UTF-16"));
}

TEST(YamlTree, RefusesHugeFiles) {
  EXPECT_EQ(tree_of(std::string(100, ' '), {.bytes = 99}), "f: 100 bytes; a config has at most 99");
}

TEST(YamlTree, RefusesTagsThatWouldBuildObjects) {
  EXPECT_THAT(tree_of("a: !!python/object:os.system x\n"), HasSubstr("is not supported"));
  EXPECT_THAT(tree_of("a: !foo [1]\n"), HasSubstr("is not supported"));
  EXPECT_EQ(tree_of("a: !!str 1\nb: !!int '2'\n"), "{a:«1»,b:2}");
}

TEST(YamlTree, RefusesKeysThatAreNoScalars) { EXPECT_THAT(tree_of("? [a]\n: b\n"), HasSubstr("must be a scalar")); }

TEST(YamlTree, AnEmptyFileIsNothing) {
  EXPECT_EQ(tree_of(""), "nothing");
  EXPECT_EQ(tree_of("# only a comment\n"), "nothing");
}

TEST(ReadFile, NamesWhatIsNotARegularFile) {
  EXPECT_EQ(read_file("/nonexistent/x", 10).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(read_file("/tmp", 10).status().message(), HasSubstr("not a regular file"));
  EXPECT_THAT(read_file("/dev/zero", 10).status().message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace assay::discover
