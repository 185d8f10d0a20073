#include "plugins/engines/common/options_json.h"

#include <gmock/gmock.h>

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Status read_rows(std::string_view json) {
  OptionsReader reader(json, "options of engine x");
  int32_t rows = 8;
  std::string name;
  reader.integer("rows", 1, 100, &rows);
  reader.string("name", &name);
  return reader.finish();
}

TEST(OptionsReader, ReadsEveryKindAndKeepsDefaultsOfAbsentOnes) {
  OptionsReader reader(R"({"rows": 3, "name": "n", "ids": ["a", "b"], "none": null})", "options");
  int32_t rows = 8;
  int32_t columns = 5;
  std::string name;
  std::string none = "kept";
  std::vector<std::string> ids;
  reader.integer("rows", 1, 100, &rows);
  reader.integer("columns", 1, 100, &columns);
  reader.string("name", &name);
  reader.string("none", &none);
  reader.strings("ids", &ids);
  ASSERT_TRUE(reader.finish().ok());
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(columns, 5);
  EXPECT_EQ(name, "n");
  EXPECT_EQ(none, "kept");
  EXPECT_THAT(ids, ElementsAre("a", "b"));
}

TEST(OptionsReader, TakesEmptyTextForAnEmptyObject) {
  EXPECT_TRUE(read_rows("").ok());
  EXPECT_TRUE(read_rows("{}").ok());
}

TEST(OptionsReader, RefusesWhatItDoesNotKnowAndListsWhatItDoes) {
  EXPECT_THAT(read_rows(R"({"colums": 1})").message(),
              HasSubstr("options of engine x: unknown member colums; known: name, rows"));
}

TEST(OptionsReader, TellsTheNearestOfTheNamesThatItKnows) {
  EXPECT_THAT(read_rows(R"({"row": 1})").message(),
              HasSubstr("unknown member row (did you mean 'rows'?); known: name, rows"));
  OptionsReader reader(R"({"wrokers": 1, "poll": 2})", "options of launcher x");
  reader.known("workers");
  reader.known("poll");
  EXPECT_THAT(reader.finish().message(),
              HasSubstr("unknown member wrokers (did you mean 'workers'?); known: poll, workers"));
}

TEST(OptionsReader, NamesTheMemberThatIsWrong) {
  for (const char* bad : {"1.5", "\"3\"", "0", "101", "18446744073709551615", "true"}) {
    const Status status = read_rows(std::string("{\"rows\": ") + bad + "}");
    EXPECT_THAT(status.message(), HasSubstr(std::string("rows is ") + bad + ", expected an integer from 1 to 100"));
  }
  EXPECT_THAT(read_rows(R"({"rows": [3]})").message(), HasSubstr("rows is a list, expected an integer from 1 to 100"));
  EXPECT_THAT(read_rows(R"({"name": 3})").message(), HasSubstr("name is 3, expected a string"));
}

TEST(OptionsReader, ATextThatWouldBeCutIsNotShownAtAll) {
  const std::string key = "sk-" + std::string(60, 'k');
  const auto failure = [](const std::string& rows) { return read_rows("{\"rows\": \"" + rows + "\"}").message(); };
  EXPECT_THAT(failure("Authorization: Bearer " + key),
              HasSubstr("rows is a text of 85 bytes, expected an integer from 1 to 100"));
  EXPECT_THAT(failure("Authorization: Bearer " + key), testing::Not(HasSubstr("sk-")));
  EXPECT_THAT(failure(std::string(58, 'a')), HasSubstr("rows is \"aaa"));
  EXPECT_THAT(failure(std::string(59, 'a')), HasSubstr("rows is a text of 59 bytes"));
  EXPECT_THAT(failure("sk-\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"),
              HasSubstr("rows is a text of 23 bytes"))
      << "escaped it would be cut";
}

TEST(OptionsReader, RefusesTextThatIsNoObject) {
  for (const char* bad : {"[", "[1]", "3", "{\"rows\": 3", "nonsense"}) {
    EXPECT_THAT(read_rows(bad).message(), HasSubstr("not a JSON object")) << bad;
  }
}

TEST(OptionsJson, WhatIsNestedTooDeepIsRefused) {
  for (const size_t depth : {255U, 256U, 1'000'000U}) {
    const std::string text = "{\"a\": {\"b\": " + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}}";
    OptionsReader reader(text, "options of a test");
    std::string a;
    reader.object("a", &a);
    EXPECT_EQ(reader.finish().message(), depth == 255U ? "" : "options of a test: nested more than 256 deep") << depth;
  }
}

TEST(OptionsJson, AMemberGivenTwiceIsRefusedAtAnyDepth) {
  for (const char* json : {R"({"a": "x", "a": "y"})", R"({"a": "x", "b": [{"a": 1, "a": 1}]})"}) {
    OptionsReader reader(json, "options of a test");
    std::string a;
    std::string b;
    reader.string("a", &a);
    reader.string("b", &b);
    EXPECT_EQ(reader.finish().message(), "options of a test: \"a\" occurs more than once in one object; keep one");
  }
}

}  // namespace
}  // namespace assay::engines
