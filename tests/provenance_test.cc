// What made a result, and what a failure says about it: the real engine, backend and checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

constexpr const char* kTextCase = "testcases/moe/moe_10m_licences_text_only";

std::filesystem::path source_folder() { return ASSAY_SOURCE_DIR; }

// The licence case with another METRICS, and a golden made elsewhere whose text differs.
void write_case(const std::filesystem::path& folder, const std::string& metrics, const json& provenance) {
  std::string config = read_file(source_folder() / kTextCase / "model_config.yaml");
  config.erase(config.find("METRICS:"));
  write_file(folder / "model_config.yaml", config + "METRICS: [" + metrics + "]\n");
  json golden = json::parse(read_file(source_folder() / kTextCase / "golden_values_dev_any.json"));
  golden["0"]["generated_text"] = "another text";
  golden["assay"] = {{"provenance", provenance}};
  write_file(folder / "golden_values_dev_any.json", golden.dump());
}

json last_event(const std::filesystem::path& journal, const std::string& name) {
  json found;
  std::istringstream lines(read_file(journal));
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line, nullptr, false);
    if (event.value("event", "") == name) found = event;
  }
  return found;
}

TEST(Provenance, FailureComparesWeightsOnlyWhereTheGoldenKnowsItsOwn) {
  const TemporaryFolder folder;
  write_case(folder.path() / "digest", "generated_text",
             {{"weights_sha256", "00"}, {"device", "another card"}, {"dtype", "bf16"}});
  write_case(folder.path() / "plain", "generated_text", {{"device", "another card"}});
  for (const char* name : {"digest", "plain"}) {
    const Output run = run_program("assay", {"run", folder / name, "--output", folder / "out" + name});
    EXPECT_EQ(run.code, 1) << run.out << run.err;
    const json event = last_event(folder / "out" + name + "/results.jsonl", "case_finished");
    const json& made = event["provenance"];
    EXPECT_EQ(made["engine"], "static_legacy");
    EXPECT_EQ(made["backend"], "cpu");
    EXPECT_EQ(made["dtype"], "bf16");
    EXPECT_EQ(made["schedule"], "2 requests, batch 1");
    EXPECT_THAT(made["backend_build"].get<std::string>(), MatchesRegex("[0-9a-f]+"));
    EXPECT_THAT(made["driver"].get<std::string>(), StartsWith("Linux "));
    const auto lines = event["verdict"]["environment"].get<std::vector<std::string>>();
    EXPECT_THAT(lines, Contains(StartsWith("device: golden another card, result cpu")));
    EXPECT_THAT(lines, Not(Contains(StartsWith("dtype"))));
    const std::string reason = event["verdict"]["reason"];
    if (name == std::string("digest")) {
      EXPECT_EQ(made["weights_sha256"].get<std::string>().size(), 64U);
      EXPECT_EQ(made["tokenizer_sha256"].get<std::string>().size(), 64U);
      EXPECT_THAT(lines, Contains(StartsWith("weights_sha256: golden 00, result ")));
      EXPECT_THAT(reason, AllOf(HasSubstr("text differs"), EndsWith("; environment changed: weights_sha256, device")));
    } else {
      EXPECT_FALSE(made.contains("weights_sha256"));
      EXPECT_THAT(reason, EndsWith("; environment changed: device"));
    }
  }
}

TEST(Quantities, ThroughputAndPrefillTokensOfTheRealEngineAreInItsResults) {
  const TemporaryFolder folder;
  write_case(folder.path() / "one", "throughput, lifetime_prefill_token_count, mem-max-allocated-bytes",
             json::object());
  const Output run = run_program("assay", {"run", folder / "one", "--output", folder / "out"});
  EXPECT_EQ(run.code, 1) << "the golden has none of these";
  const json actual = json::parse(read_file(folder / "out/cases/one/actual.json"), nullptr, false);
  ASSERT_EQ(actual["throughput"].size(), 1U) << run.out << run.err;
  EXPECT_GT(actual["throughput"][0], 0);
  EXPECT_GT(actual["lifetime_prefill_token_count"], 0);
  EXPECT_GT(actual["mem-max-allocated-bytes"], 1 << 20);
  EXPECT_EQ(last_event(folder / "out/results.jsonl", "case_finished")["verdict"]["verdict"], "NOT_COMPARABLE");
}

}  // namespace
}  // namespace assay::tests
