// Gold cases through a server that is honest: what it says is what our own engine computes, so every verdict is as it
// is without a server in between. One with spoiled weights, as honest otherwise, is found out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "plugins/engines/openai/testdata/test_server.h"
#include "tests/honest_model.h"
#include "tests/program.h"

namespace assay::tests {
namespace {

using engines::openai::TestServer;
using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;

const std::string kMoe = "testcases/moe/moe_10m_licences_";
const std::string kCheckpoint = ASSAY_SOURCE_DIR "/golden/moe_10m_licences/checkpoint";

// A model (that of the fp32 case, or a spoiled one) and a server for it.
class Served {
 public:
  explicit Served(const std::string& checkpoint = "") {
    Result<std::unique_ptr<HonestModel>> opened =
        HonestModel::open(ASSAY_SOURCE_DIR "/" + kMoe + "self_test", checkpoint);
    if (!opened) {
      ADD_FAILURE() << opened.status().message();
      return;
    }
    model_ = *std::move(opened);
    server_ = std::make_unique<TestServer>(
        engines::openai::TestServerOptions{.model = [this](const std::string& body) { return model_->answer(body); }});
  }

  // The case as `assay run --json` tells of it.
  json run(const std::string& name, const std::string& folder) const {
    const json options = {
        {"url", server_ ? server_->url() : "http://127.0.0.1:1"}, {"stream", false}, {"prompt_logprobs", "list"}};
    const Output ran = run_program("assay", {"run", kMoe + name, "--engine", "openai", "--engine-options",
                                             options.dump(), "--platform", "cpu_x86_64", "--json", "--output", folder});
    const json cases = json::parse(ran.out, nullptr, false);
    if (!cases.is_array() || cases.size() != 1) {
      ADD_FAILURE() << ran.out << ran.err;
      return json::object();
    }
    return cases[0];
  }

 private:
  std::unique_ptr<HonestModel> model_;
  std::unique_ptr<TestServer> server_;
};

TEST(OpenaiGold, AnHonestServerPasses) {
  const Served served;
  const TemporaryFolder folder;
  for (const char* name : {"text_only", "fp32_b1", "self_test"}) {  // texts; and tokens; and logprobs
    const json one = served.run(name, folder / name);
    EXPECT_THAT(one.value("verdict", ""), AnyOf("IDENTICAL", "EQUIVALENT")) << name << ": " << one.dump(1);
    EXPECT_GE(one.value("requests", 0), 2) << name;
    RecordProperty(name, one.dump());
    if (std::string(name) != "self_test") continue;
    ASSERT_TRUE(one["max_abs_logprob_difference"].is_number()) << one.dump(1);  // logprobs of prompts were judged too
    EXPECT_LE(one["max_abs_logprob_difference"].get<double>(), 1e-6);
  }
}

TEST(OpenaiGold, SpoiledWeightsAreFoundOut) {
  const TemporaryFolder folder;
  const Status spoiled =
      spoil_checkpoint(kCheckpoint, folder.path() / "checkpoint", "self_attention.linear_proj.weight");
  ASSERT_TRUE(spoiled.ok()) << spoiled.message();
  const Served served(folder / "checkpoint");
  for (const char* name : {"text_only", "fp32_b1", "self_test"}) {
    const json one = served.run(name, folder / name);
    EXPECT_THAT(one.value("verdict", ""), AnyOf("DIVERGED", "DRIFT")) << name << ": " << one.dump(1);
    RecordProperty(name, one.dump());
  }
}

}  // namespace
}  // namespace assay::tests
