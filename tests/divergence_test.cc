// Real pairs that part, through the real programs: rounding is told from defects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program.h"

namespace assay::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Divergence : public testing::Test {
 protected:
  void SetUp() override {
    if (shared_folder().empty()) GTEST_SKIP() << "the shared folder of test data is not beside this checkout";
  }

  // A copy of a case of `tree` ("vectors", "gold") below the temporary folder.
  fs::path copy(const std::string& tree, const std::string& name) {
    const fs::path to = folder_.path() / "cases" / name;
    fs::create_directories(to.parent_path());
    fs::copy(shared_folder() / tree / "cases" / name, to, fs::copy_options::recursive);
    return to;
  }
  static void change_config(const fs::path& folder, const std::string& from, const std::string& to) {
    std::string text = read_file(folder / "model_config.yaml");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    write_file(folder / "model_config.yaml", text);
  }
  static json golden_of(const fs::path& folder) {
    return json::parse(read_file(folder / "golden_values_dev_dgx_h200.json"));
  }
  static void put_golden(const fs::path& folder, const json& golden) {
    write_file(folder / "golden_values_dev_dgx_h200.json", golden.dump());
  }

  // The verdict of the one case in `path`, from the journal.
  json verdict(const std::string& tree, const fs::path& path, const std::vector<std::string>& more = {}) {
    const std::string out = folder_ / ("out" + std::to_string(runs_++));
    std::vector<std::string> words = {
        "run",        path.string(), "--set",    "CHECKPOINT_LOAD_PATH=" + (shared_folder() / tree).string(),
        "--platform", "dgx_h200",    "--output", out};
    words.insert(words.end(), more.begin(), more.end());
    const Output run = run_program("assay", words);
    std::istringstream lines(read_file(out + "/results.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const json event = json::parse(line);
      if (event["event"] == "case_finished") return event["verdict"];
    }
    ADD_FAILURE() << run.out << run.err;
    return json::object();
  }

  const TemporaryFolder folder_;
  int runs_ = 0;
};

TEST_F(Divergence, TiesOfLogitsAndOfExpertsAreDriftWithTheirReason) {
  for (const char* name : {"moe_sigmoid_bf16_b1", "moe_sigmoid_bf16_b4"}) {
    const json judged = verdict("vectors", shared_folder() / "vectors/cases" / name);
    EXPECT_EQ(judged["verdict"], "DRIFT") << judged["reason"];
    EXPECT_THAT(judged["reason"].get<std::string>(), HasSubstr("1 near-tie, 1 routing tie, 0 true splits"));
    for (const json& request : judged["evidence"]) {
      if (!request.contains("reanchoring")) continue;
      EXPECT_EQ(request["reanchoring"]["method"], "forced");
      EXPECT_EQ(request["reanchoring"]["true_splits"], 0);
      EXPECT_EQ(request["reanchoring"]["reproduced"], true);
    }
  }
}

TEST_F(Divergence, OtherArithmeticIsNeverDiverged) {
  for (const char* name : {"moe_sigmoid_bf16_b1", "moe_sigmoid_bf16_b4"}) {
    const fs::path folder = copy("vectors", name);
    change_config(folder, "  --bf16: true\n", "");
    const json judged = verdict("vectors", folder);
    EXPECT_EQ(judged["verdict"], "DRIFT") << judged["reason"];
    EXPECT_THAT(judged["reason"].get<std::string>(), HasSubstr("arithmetic differs: golden bf16, run fp32"));
  }
  for (const char* name : {"moe_mixed_b1", "moe_sigmoid_b4"}) {
    const fs::path folder = copy("vectors", name);
    change_config(folder, "MODEL_ARGS:\n", "MODEL_ARGS:\n  --bf16: true\n");
    change_config(folder, "  - \"logprobs\"\n", "");
    const json judged = verdict("vectors", folder);
    EXPECT_EQ(judged["verdict"], "EQUIVALENT") << judged["reason"];
    EXPECT_THAT(judged["reason"].get<std::string>(), HasSubstr("arithmetic differs: golden fp32, run bf16"));
  }
}

TEST_F(Divergence, TheKnownTextSurvivesTheOtherArithmetic) {
  for (const char* name : {"moe_10m_licences_b1", "moe_10m_licences_b4"}) {
    const fs::path folder = copy("gold", name);
    change_config(folder, "  --bf16: true\n", "");
    EXPECT_EQ(verdict("gold", folder)["verdict"], "IDENTICAL");
  }
}

TEST_F(Divergence, OneTokenAlteredByHandIsOneTrueSplitAtItsPlace) {
  for (const char* name : {"moe_sigmoid_b1", "moe_sigmoid_bf16_b4", "dense_gqa_relu2_b4"}) {
    const fs::path folder = copy("vectors", name);
    json golden = golden_of(folder);
    json& token = golden["2"]["generated_tokens"][5];
    token = (token.get<int>() + 101) % 4000;
    put_golden(folder, golden);
    const json judged = verdict("vectors", folder);
    EXPECT_EQ(judged["verdict"], "DIVERGED") << judged["reason"];
    EXPECT_THAT(judged["reason"].get<std::string>(),
                HasSubstr("re-anchored over 24 tokens: 0 near-ties, 1 true split; all tokens behind it agree"));
    EXPECT_THAT(judged["reason"].get<std::string>(), HasSubstr("request 2: first divergent token 5"));
    const json& evidence = judged["evidence"][0];
    EXPECT_EQ(evidence["request"], "2");
    EXPECT_EQ(evidence["first_divergent"], 5);
    EXPECT_EQ(evidence["split"]["golden"]["id"], token);
    EXPECT_GT(evidence["split"]["golden_rank"], 100);
    EXPECT_EQ(evidence["split"]["top"][0]["result"], true);
  }
}

TEST_F(Divergence, ATextOnlyGoldenIsReanchoredOverIdsOfItsText) {
  const fs::path folder = copy("gold", "moe_10m_licences_b1");
  change_config(folder, "  - \"generated_tokens\"\n", "");
  json golden = golden_of(folder);
  json texts;
  for (const auto& [id, record] : golden.items()) {
    texts[id] = {{"input_prompt", record["input_prompt"]}, {"generated_text", record["generated_text"]}};
  }
  std::string text = texts["1"]["generated_text"];
  const size_t at = text.find(" the ");
  ASSERT_NE(at, std::string::npos);
  texts["1"]["generated_text"] = text.replace(at, 5, " whale ");
  put_golden(folder, texts);
  const json judged = verdict("gold", folder);
  EXPECT_EQ(judged["verdict"], "DIVERGED") << judged["reason"];
  EXPECT_THAT(judged["reason"].get<std::string>(), HasSubstr("true split"));
  EXPECT_EQ(judged["evidence"][0]["reanchoring"]["method"], "forced");
}

TEST_F(Divergence, StaleKeysAndValuesStayDiverged) {
  for (const char* name : {"moe_sigmoid_b1", "moe_sigmoid_bf16_b1"}) {
    const json judged = verdict("vectors", shared_folder() / "vectors/cases" / name,
                                {"--engine", "faulty", "--engine-options", R"({"fault": "stale_kv"})"});
    EXPECT_EQ(judged["verdict"], "DIVERGED") << judged["reason"];
    EXPECT_THAT(judged["reason"].get<std::string>(), HasSubstr("true splits"));
  }
}

TEST_F(Divergence, ReplayedResultsSayThatThereIsNoEngineToRunAgain) {
  const fs::path folder = copy("vectors", "moe_sigmoid_b1");
  const std::string recorded = read_file(folder / "golden_values_dev_dgx_h200.json");
  const std::string path = folder_ / "recorded.json";
  write_file(path, recorded);
  json golden = json::parse(recorded);
  golden["0"]["generated_tokens"][3] = 7;
  put_golden(folder, golden);
  const json judged = verdict("vectors", folder, {"--engine", "replay", "--recorded", path});
  EXPECT_EQ(judged["verdict"], "DIVERGED") << judged["reason"];
  EXPECT_THAT(judged["evidence"][0]["reanchoring"]["not_done"].get<std::string>(), HasSubstr("no engine to run again"));
  const Output compared = run_program("assay", {"compare", (folder / "golden_values_dev_dgx_h200.json").string(), path,
                                                "--config", (folder / "model_config.yaml").string()});
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.out, HasSubstr("request 0 parts at generated token 3 of 24: golden 7"));
  EXPECT_THAT(compared.out, HasSubstr("not re-anchored: no engine to run again"));
}

}  // namespace
}  // namespace assay::tests
