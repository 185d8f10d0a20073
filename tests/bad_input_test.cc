// Broken cases: each is one clear line and its own verdict; the case beside it still passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

struct BadCase {
  std::string name;
  std::string from;      // text of the good model_config.yaml ...
  std::string to;        // ... and what replaces it
  std::string expected;  // part of the reason
};

fs::path source() { return ASSAY_SOURCE_DIR; }

std::string good_config() { return read_file(source() / "testcases/moe/moe_10m_licences_bf16_b1/model_config.yaml"); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void write_licence_case(const fs::path& folder, const std::string& config) {
  write_file(folder / "model_config.yaml", config);
  fs::copy_file(source() / "testcases/moe/moe_10m_licences_bf16_b1/golden_values_dev_any.json",
                folder / "golden_values_dev_any.json");
}

// The verdicts of a run over `folder`, by case name.
std::map<std::string, json> run_folder(const fs::path& folder, const fs::path& output) {
  const Output run = run_program("assay", {"run", folder.string(), "--json", "--output", output.string()});
  EXPECT_EQ(run.code, 1) << run.err;
  std::map<std::string, json> verdicts;
  const json cases = json::parse(run.out, nullptr, false);
  if (!cases.is_array()) {
    ADD_FAILURE() << run.out << run.err;
    return verdicts;
  }
  for (const json& one : cases) verdicts[one["name"]] = one;
  return verdicts;
}

TEST(BadInput, EachBrokenCaseIsInvalidWithAReasonAndTheGoodOneStillPasses) {
  const std::string checkpoint = "golden/moe_10m_licences/checkpoint";
  const std::vector<BadCase> table = {
      {"yaml", "METRICS:", "METRICS: [\"a", "model_config.yaml"},
      {"argument", "--moe-router-topk: 6", "--moe-ruoter-topk: 6", "--moe-router-topk"},
      {"checkpoint", checkpoint, "golden/no_such_checkpoint", "golden/no_such_checkpoint"},
      {"vocabulary", "golden/moe_10m_licences/vocab.json", "golden/no_vocab.json", "golden/no_vocab.json"},
      {"prompts", "golden/moe_10m_licences/prompts.jsonl", "golden/no_prompts.jsonl", "golden/no_prompts.jsonl"},
      {"shape", "--moe-ffn-hidden-size: 32", "--moe-ffn-hidden-size: 48", "2 * moe_ffn_hidden_size"},
      {"layers", "--num-layers: 4", "--num-layers: 5", "5"},
      {"variable", checkpoint, "${NO_SUCH_VARIABLE}/x", "NO_SUCH_VARIABLE"},
      {"type", "--num-layers: 4", "--num-layers: four", "four"},
      {"too_long", "--inference-max-seq-length: 1024", "--inference-max-seq-length: 100", "100"},
      {"unsupported", "--swiglu: true", "--quick-geglu: true", "--quick-geglu"},
      {"empty_metrics", "  - \"generated_text\"\n  - \"generated_tokens\"\n", "", "METRICS"},
      {"unknown_metric", "generated_text", "generated_txt", "generated_txt"},
  };
  const TemporaryFolder folder;
  for (const BadCase& bad : table) {
    write_licence_case(folder.path() / "cases" / bad.name, replaced(good_config(), bad.from, bad.to));
  }
  write_licence_case(folder.path() / "cases/good", good_config());
  write_licence_case(folder.path() / "cases/golden_not_json", good_config());
  write_file(folder.path() / "cases/golden_not_json/golden_values_dev_any.json", "{\"0\": {");
  write_licence_case(folder.path() / "cases/golden_missing", good_config());
  fs::remove(folder.path() / "cases/golden_missing/golden_values_dev_any.json");

  const auto verdicts = run_folder(folder.path() / "cases", folder.path() / "out");
  ASSERT_EQ(verdicts.size(), table.size() + 3);
  EXPECT_EQ(verdicts.at("good")["verdict"], "IDENTICAL") << verdicts.at("good").dump(1);
  EXPECT_EQ(verdicts.at("golden_not_json")["verdict"], "INVALID");
  EXPECT_EQ(verdicts.at("golden_missing")["verdict"], "NOT_COMPARABLE");
  for (const BadCase& bad : table) {
    const json& one = verdicts.at(bad.name);
    const bool nothing_to_compare = bad.name == "empty_metrics" || bad.name == "unknown_metric";
    EXPECT_EQ(one["verdict"], nothing_to_compare ? "NOT_COMPARABLE" : "INVALID") << one.dump(1);
    const std::string reason = one["reason"];
    EXPECT_THAT(reason, HasSubstr(bad.expected)) << bad.name;
    EXPECT_EQ(std::count(reason.begin(), reason.end(), '\n'), 0) << bad.name << ": one line";
  }
}

TEST(BadInput, AnOutputFolderUsedAgainKeepsNoResultOfACaseThatDidNotRun) {
  const TemporaryFolder folder;
  const fs::path actual = folder.path() / "out/cases/case/actual.json";
  write_licence_case(folder.path() / "case",
                     replaced(good_config(), "golden/moe_10m_licences/vocab.json", "no_vocab.json"));
  write_file(actual, "{}");
  EXPECT_EQ(run_program("assay", {"run", folder / "case", "--output", folder / "out"}).code, 2) << "of no run";
  EXPECT_TRUE(fs::exists(actual));
  write_file(folder.path() / "out/.lock", "");  // a run was here before
  EXPECT_EQ(run_program("assay", {"run", folder / "case", "--output", folder / "out"}).code, 1);
  EXPECT_FALSE(fs::exists(actual));
}

TEST(BadInput, DamagedCheckpointsAreNamedAndNeverCrash) {
  const TemporaryFolder folder;
  const fs::path original = source() / "golden/moe_10m_licences/checkpoint";
  const auto damaged = [&](const std::string& name, const std::string& file, auto&& damage) {
    const fs::path copy = folder.path() / ("ckpt_" + name);
    fs::copy(original, copy, fs::copy_options::recursive);
    std::string bytes = read_file(copy / file);
    damage(bytes);
    write_file(copy / file, bytes);
    write_licence_case(folder.path() / "cases" / name,
                       replaced(good_config(), "golden/moe_10m_licences/checkpoint", copy.string()));
  };
  damaged("truncated_data", "iter_0000001/__0_0.distcp", [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  damaged("flipped_data", "iter_0000001/__0_0.distcp", [](std::string& bytes) {
    for (size_t i = 1; i < 17; ++i) bytes[bytes.size() / 17 * i] ^= 0x40;  // some of them lie in padding
  });
  damaged("truncated_metadata", "iter_0000001/.metadata",
          [](std::string& bytes) { bytes.resize(bytes.size() - 1000); });
  damaged("no_iteration", "latest_checkpointed_iteration.txt", [](std::string& bytes) { bytes = "seven"; });
  const auto verdicts = run_folder(folder.path() / "cases", folder.path() / "out");
  ASSERT_EQ(verdicts.size(), 4U);
  for (const auto& [name, one] : verdicts) {
    EXPECT_EQ(one["verdict"], "INVALID") << one.dump(1);
    EXPECT_THAT(one["reason"].get<std::string>(), HasSubstr("ckpt_" + name));
  }
}

}  // namespace
}  // namespace assay::tests
