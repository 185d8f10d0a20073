// Cases that are judged by relations, as the commands treat them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kModelCase = "testcases/moe/moe_10m_licences_bf16_buffered";

// A case of the committed model whose ASSAY block has these lines; METRICS are left out.
void write_model_case(const fs::path& folder, const std::string& assay) {
  std::string config = read_file(fs::path(ASSAY_SOURCE_DIR) / kModelCase / "model_config.yaml");
  config.resize(config.find("METRICS:"));
  write_file(folder / "model_config.yaml", config + "ASSAY:\n" + assay);
}

TEST(MetamorphicCommand, ListAndShowSayWhichRelationsACaseAsksFor) {
  const TemporaryFolder folder;
  write_model_case(folder / "cases/moe/some",
                   "  metamorphic: {relations: [save_load, prefix_cache], batches: [2, 3]}\n");
  fs::copy(fs::path(ASSAY_SOURCE_DIR) / kModelCase, folder / "cases/moe/gold");
  const Output list = run_program("assay", {"list", folder / "cases", "--json"});
  ASSERT_EQ(list.code, 0) << list.err;
  const Json cases = Json::parse(list.out);
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_TRUE(cases[0].at("metamorphic").is_null());
  EXPECT_EQ(cases[1].at("metamorphic"), Json({"save_load", "prefix_cache"}));
  EXPECT_TRUE(cases[1].at("metrics").is_null());
  for (const char* field : {"name", "path", "model", "mode", "test_type", "metrics", "engine", "goldens", "error"}) {
    EXPECT_TRUE(cases[1].contains(field)) << field;
  }
  EXPECT_THAT(run_program("assay", {"list", folder / "cases"}).out, HasSubstr("relations: save_load,prefix_cache"));

  const Output show = run_program("assay", {"show", folder / "cases/moe/some"});
  EXPECT_EQ(show.code, 0) << show.out << show.err;
  EXPECT_THAT(show.out, HasSubstr("relations save_load, prefix_cache (2)\n  batches 2, 3\n"));
  const Json shown = Json::parse(run_program("assay", {"show", folder / "cases/moe/some", "--json"}).out);
  EXPECT_EQ(shown.at("metamorphic"), Json({{"relations", {"save_load", "prefix_cache"}}, {"batches", {2, 3}}}));
}

TEST(MetamorphicCommand, MistakesInTheBlockAreTheCasesVerdictWithLineAndColumn) {
  const TemporaryFolder folder;
  write_model_case(folder / "cases/moe/typo", "  metamorphic: [prefix_cach]\n");
  const Output run = run_program("assay", {"run", folder / "cases", "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 1) << run.err;
  const Json rows = Json::parse(run.out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("verdict"), "INVALID");
  EXPECT_THAT(rows[0].at("reason").get<std::string>(), HasSubstr("did you mean 'prefix_cache'?"));
  EXPECT_EQ(run_program("assay", {"run", folder / "cases", "--metamorphic=prefix_cache"}).code, 2);
  EXPECT_EQ(run_program("assay", {"run", folder / "cases", "--metamorph"}).code, 2);
}

TEST(MetamorphicCommand, WhereThereIsNoGoldenOneLineSaysSo) {
  const TemporaryFolder folder;
  write_model_case(folder / "cases/moe/all", "  metamorphic: all\n");
  const std::string one = folder / "cases/moe/all";
  const auto refused = [&](const Output& output, const std::string& text) {
    EXPECT_NE(output.code, 0);
    EXPECT_THAT(text, HasSubstr("ASSAY.metamorphic: the case is judged by relations between runs of its own"));
  };
  Output output = run_program("assay", {"record", folder / "cases"});
  refused(output, output.out);
  output = run_program("assay", {"accept", one, "--all", "--reason", "why"});
  refused(output, output.err);
  output = run_program("assay", {"calibrate", one});
  refused(output, output.err);
  output = run_program("assay", {"compare", "a.json", "b.json", "--config", one + "/model_config.yaml"});
  refused(output, output.out);
  EXPECT_FALSE(fs::exists(folder / "assay-out"));
}

TEST(MetamorphicCommand, RecordPassesOverThemAndRecordsTheOthers) {
  const TemporaryFolder folder;
  write_model_case(folder / "cases/moe/all", "  metamorphic: all\n");
  fs::copy(fs::path(ASSAY_SOURCE_DIR) / "testcases/moe/moe_10m_licences_text_only", folder / "cases/moe/gold");
  const Output output = run_program("assay", {"record", folder / "cases", "--output", folder / "out"});
  EXPECT_EQ(output.code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("moe/all: nothing to record: "));
  EXPECT_THAT(output.out, HasSubstr("0 not recorded"));
}

// Sizes at which all relations together take few seconds.
constexpr const char* kSmall =
    "  metamorphic: {batches: [1, 2], chunks: [7], threads: [2], prompt_tokens: 200, new_tokens: 8}\n";

TEST(MetamorphicCommand, EveryRelationHoldsAndIsARowWithItsOwnFolder) {
  const TemporaryFolder folder;
  write_model_case(folder / "cases/moe/small", kSmall);
  const Output run = run_program("assay", {"run", folder / "cases", "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const Json rows = Json::parse(run.out);
  ASSERT_EQ(rows.size(), 12U);
  for (const Json& row : rows) {
    const std::string relation = row.at("relation");
    EXPECT_EQ(row.at("name"), "moe/small@" + relation);
    EXPECT_EQ(row.at("verdict"), "IDENTICAL") << row.dump(1);
    EXPECT_TRUE(fs::exists(folder / ("out/cases/moe/small@" + relation + "/reference.json"))) << relation;
    EXPECT_TRUE(fs::exists(folder / ("out/cases/moe/small@" + relation + "/actual.json"))) << relation;
  }
  const std::string journal = read_file(folder / "out/results.jsonl");
  EXPECT_EQ(journal.find("load_finished"), journal.rfind("load_finished")) << "one load for all of them";
  EXPECT_THAT(run_program("assay", {"record", "--run", folder / "out"}).code, Not(0)) << "there is no golden in it";
}

TEST(MetamorphicCommand, WhatDoesNotHoldNamesTheRelationAndIsRunAgainByItsOwnCommand) {
  const TemporaryFolder folder;
  write_model_case(folder / "cases/moe/small",
                   "  metamorphic: {relations: [shuffled_order, prefix_cache], prompt_tokens: 40}\n");
  const Output run = run_program(
      "assay", {"run", folder / "cases/moe/small", "--engine", "faulty", "--engine-options",
                R"({"engine":"buffered","fault":"stale_prefix","seed":3})", "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 1) << run.out << run.err;
  std::string again;
  for (const Json& row : Json::parse(run.out)) {
    if (row.at("relation") != "prefix_cache") {
      EXPECT_EQ(row.at("verdict"), "IDENTICAL") << row.dump(1);
      continue;
    }
    EXPECT_THAT(row.at("verdict").get<std::string>(), ::testing::AnyOf("DRIFT", "DIVERGED")) << row.dump(1);
    again = row.at("reproduce");
  }
  ASSERT_THAT(again, HasSubstr(" --filter '*@prefix_cache'"));
  const std::string program = ASSAY_BINARY_DIR "/bin/" + again + " --json --output " + folder / "again";
  const Output repeated = run_file("/bin/sh", {"-c", program});
  EXPECT_EQ(repeated.code, 1) << repeated.err;
  ASSERT_EQ(Json::parse(repeated.out).size(), 1U);
  EXPECT_EQ(Json::parse(repeated.out)[0].at("relation"), "prefix_cache");
  const std::string page = read_file(folder / "out/report.html");
  EXPECT_THAT(page, HasSubstr("Likely cause: the prefix cache."));
}

TEST(MetamorphicCommand, WaiversOfARelationTimeLimitsAndRepeatsWorkAsEver) {
  const TemporaryFolder folder;
  const std::string waiver =
      "  waivers: [{reason: known, owner: kim, issue: '#1', expires: 2999-12-31, verdicts: [NOT_COMPARABLE], "
      "relations: [prefix_cache]}]\n";
  write_model_case(folder / "cases/moe/static",
                   "  engine: static_legacy\n  metamorphic: {relations: [prefix_cache, "
                   "repeated_call], prompt_tokens: 40}\n" +
                       waiver);
  const Output run =
      run_program("assay", {"run", folder / "cases", "--repeat", "2", "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const Json rows = Json::parse(run.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("verdict"), "WAIVED") << rows[0].dump(1);
  EXPECT_EQ(rows[1].at("verdict"), "IDENTICAL") << rows[1].dump(1);
  EXPECT_THAT(rows[1].at("reason").get<std::string>(), HasSubstr("2 repeats, bit-equal"));
  const Output late = run_program("assay", {"run", folder / "cases", "--timeout", "0.01", "--filter", "*@repeated_call",
                                            "--json", "--output", folder / "late"});
  EXPECT_EQ(Json::parse(late.out)[0].at("verdict"), "CRASHED") << late.out;
}

TEST(MetamorphicCommand, RecordedResultsAreNotComparable) {
  const TemporaryFolder folder;
  const Output run = run_program(
      "assay", {"run", kModelCase, "--metamorphic", "--engine", "replay", "--json", "--output", folder / "out"});
  EXPECT_EQ(run.code, 1) << run.err;
  const Json rows = Json::parse(run.out);
  ASSERT_EQ(rows.size(), 1U) << "one line for all relations";
  EXPECT_EQ(rows[0].at("verdict"), "NOT_COMPARABLE");
  EXPECT_THAT(rows[0].at("reason").get<std::string>(), HasSubstr("engine replay gives recorded results"));
}

}  // namespace
}  // namespace assay::tests
