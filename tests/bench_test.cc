// `assay bench` on backends that need no GPU.
#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program.h"

namespace assay::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kCase = "testcases/moe/moe_10m_licences_bf16_b1";
constexpr const char* kCheckpoint = "golden/moe_10m_licences/checkpoint";

// The objects of --json by "what"; the last of each.
std::map<std::string, json> objects(const Output& output) {
  std::map<std::string, json> found;
  std::istringstream lines(output.out);
  for (std::string line; std::getline(lines, line);) {
    json object = json::parse(line);
    const std::string what = object["what"];
    found[what] = std::move(object);
  }
  return found;
}

const std::vector<std::string> kSmallModel = {"--",
                                              "--num-layers",
                                              "2",
                                              "--hidden-size",
                                              "64",
                                              "--num-attention-heads",
                                              "4",
                                              "--bf16",
                                              "--vocab-size",
                                              "500",
                                              "--swiglu",
                                              "--disable-bias-linear",
                                              "--max-position-embeddings",
                                              "256",
                                              "--num-experts",
                                              "8",
                                              "--moe-router-topk",
                                              "2",
                                              "--moe-ffn-hidden-size",
                                              "32",
                                              "--normalization",
                                              "RMSNorm",
                                              "--position-embedding-type",
                                              "rope"};

TEST(Bench, DecodeOfACaseAloneAndThroughTheEngine) {
  const Output output = run_program("assay", {"bench", "decode", kCase, "--backend", "cpu", "--context", "5,9",
                                              "--concurrency", "1,3", "--rounds", "2", "--steps", "4", "--json"});
  ASSERT_EQ(output.code, 0) << output.err;
  auto found = objects(output);
  EXPECT_EQ(found["model"]["backend"], "cpu");
  EXPECT_GT(found["model"]["read_bandwidth"], 1e8);
  for (const char* what : {"decode", "engine"}) {
    const json& row = found[what];
    EXPECT_EQ(row["context"], 9) << what;
    EXPECT_EQ(row["rounds"], 2) << what;
    EXPECT_GT(row["ms"], 0) << what;
    EXPECT_LE(row["ms_least"], row["ms"]) << what;
    EXPECT_GT(row["fraction"], 0) << what;
  }
  EXPECT_EQ(found["engine"]["requests"], 3);
  EXPECT_EQ(found["decode"]["experts_chosen"], 6);
  EXPECT_GE(found["engine"]["experts_chosen"], 6);
  EXPECT_LE(found["engine"]["experts_chosen"], 18);
  EXPECT_GT(found["engine"]["bytes"], found["decode"]["bytes"]);
  EXPECT_NEAR(found["engine"]["tokens_per_second"].get<double>(), 3e3 / found["engine"]["ms"].get<double>(), 1e-3);
  EXPECT_GT(found["memory"]["host_peak_bytes"], 1 << 20);
  EXPECT_EQ(found["kernel"]["of"], "step at context 9, each alone on one thread");
  EXPECT_GT(found["kernel"]["gb_per_s"], 0);
}

TEST(Bench, ArgumentsAndRandomWeightsNeedNoFile) {
  for (const char* backend : {"cpu", "reference"}) {
    std::vector<std::string> words = {"bench",     "prefill", "--random-weights=7", "--backend", backend,
                                      "--context", "3,6",     "--rounds",           "1",         "--json"};
    words.insert(words.end(), kSmallModel.begin(), kSmallModel.end());
    const Output output = run_program("assay", words);
    ASSERT_EQ(output.code, 0) << output.err;
    auto found = objects(output);
    EXPECT_EQ(found["model"]["config"]["vocab_size"], 512) << "padded";
    EXPECT_EQ(found["prefill"]["tokens"], 6);
    EXPECT_GT(found["prefill"]["flops_per_second"], 0);
  }
}

TEST(Bench, LoadingIsShownBesideARawRead) {
  const Output output = run_program("assay", {"bench", "load", "--checkpoint", kCheckpoint, "--backend", "cpu",
                                              "--rounds", "2", "--read-threads", "2", "--json"});
  ASSERT_EQ(output.code, 0) << output.err;
  const json row = objects(output)["load"];
  EXPECT_GT(row["gb_per_s"], 0);
  EXPECT_GT(row["raw_gb_per_s"], 0);
  EXPECT_GT(row["tensor_bytes"], 1 << 24);
  EXPECT_EQ(row["cold"], false);
  EXPECT_EQ(row["backend"], "cpu");
}

TEST(Bench, TextSaysWhatWasMeasuredOnWhat) {
  const Output output = run_program("assay", {"bench", "decode", "--checkpoint", kCheckpoint, "--backend", "cpu",
                                              "--context", "4", "--rounds", "1", "--steps", "2"});
  ASSERT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("4 layers, hidden 256"));
  EXPECT_THAT(output.out, HasSubstr("backend cpu on cpu"));
  EXPECT_THAT(output.out, HasSubstr("memory is read at"));
  EXPECT_THAT(output.out, HasSubstr("1 at once, context      4"));
  EXPECT_THAT(output.out, HasSubstr("first layer of an expert"));
}

TEST(Bench, RandomWeightsWithoutASeedLeaveTheNextWordAlone) {
  const Output output = run_program("assay", {"bench", "prefill", "--random-weights", kCase, "--backend", "cpu",
                                              "--context", "2", "--rounds", "1", "--no-kernels", "--json"});
  ASSERT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(objects(output)["prefill"]["tokens"], 2);
}

TEST(Bench, LearnedPositionsThatEndTooEarlyAreTold) {
  std::vector<std::string> words = {"bench", "decode", "--random-weights", "--context", "250", "--steps", "7"};
  words.insert(words.end(), kSmallModel.begin(), kSmallModel.end());
  words.back() = "learned_absolute";
  const Output output = run_program("assay", words);
  EXPECT_EQ(output.code, 2) << output.err;
  EXPECT_THAT(output.err, HasSubstr("257 tokens (--context, --steps): the model has learned 256 positions"));
}

TEST(Bench, ATemporaryFolderThatIsNotThereIsTold) {
  std::vector<std::string> words = {"TMPDIR=/nowhere",
                                    (std::filesystem::path(ASSAY_BINARY_DIR) / "bin/assay").string(),
                                    "bench",
                                    "decode",
                                    "--random-weights",
                                    "--backend",
                                    "cpu"};
  words.insert(words.end(), kSmallModel.begin(), kSmallModel.end());
  const Output output = run_file(find_executable("env"), words);
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_THAT(output.err, HasSubstr("TMPDIR names none"));
}

TEST(Bench, RandomWeightsThatTheDiskHasNoRoomForAreNotBegun) {
  const Output output =
      run_program("assay", {"bench", "decode", "--random-weights", "--backend", "cpu", "--", "--num-layers", "1000",
                            "--hidden-size", "65536", "--num-attention-heads", "64", "--vocab-size", "500",
                            "--max-position-embeddings", "256", "--position-embedding-type", "rope"});
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_THAT(output.err, HasSubstr("set TMPDIR to a larger place"));
}

// While it measures: a signal that ends it takes the checkpoint of random weights along; a bus error is a line.
TEST(Bench, SignalsLeaveNothingBehindAndACutFileIsALine) {
  const std::string program = (std::filesystem::path(ASSAY_BINARY_DIR) / "bin/assay").string();
  std::string line = program + " bench decode --random-weights --backend cpu --context 200 --rounds 1000 --steps 5000";
  for (const std::string& word : kSmallModel) line += " " + word;
  const auto run_until = [&](const std::string& signal, const TemporaryFolder& folder) {  // a checkpoint's last file
    const std::string script = "TMPDIR='" + folder.path().string() + "'; export TMPDIR; " + line +
                               " & p=$!; until ls \"$TMPDIR\"/*/latest_checkpointed_iteration.txt >/dev/null 2>&1; "
                               "do sleep 0.02; done; kill -" +
                               signal + " $p; wait $p";
    return run_file(find_executable("sh"), {"-c", script});
  };
  const TemporaryFolder first;
  const Output stopped = run_until("TERM", first);
  EXPECT_EQ(stopped.code, 128 + SIGTERM) << stopped.err;
  EXPECT_TRUE(std::filesystem::is_empty(first.path()));
  const TemporaryFolder second;
  const Output cut = run_until("BUS", second);
  EXPECT_EQ(cut.code, 3) << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("assay: bench: bus error: a file of the checkpoint was cut"));
}

// Exit code 2 and one line that names what is wrong.
TEST(Bench, WhatIsWrongIsOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{}, "nothing to measure, expected decode, prefill or load"},
      {{"speed"}, "'speed' to measure, expected decode, prefill or load"},
      {{"decode"}, "no model: give a CASE"},
      {{"decode", "/nowhere"}, "/nowhere"},
      {{"decode", "testcases"}, "cases, expected one"},
      {{"decode", kCase, "--", "--num-layers", "2"}, "a case and MODEL_ARGS together"},
      {{"decode", "--", "--num-layers", "2"}, "no weights"},
      {{"decode", "--random-weights", "--", "--num-layer", "2"}, "--num-layer"},
      {{"decode", "--random-weights=x", kCase}, "random-weights"},
      {{"decode", "--random-weights=-1", kCase}, "--random-weights=-1: expected a seed of 0"},
      {{"decode", "--random-weights=18446744073709551616", kCase}, "expected a seed of 0"},
      {{"decode", kCase, "--backend", "gpu"}, "gpu"},
      {{"decode", kCase, "--backend", "cpu", "--backend-options", "[]"}, "expected a JSON object"},
      {{"decode", kCase, "--backend", "cpu", "--backend-options", "{\"slice\":1}"}, "'slice' is unknown"},
      {{"decode", kCase, "--backend", "cpu", "--context", "0"}, "--context '0': expected numbers of 1"},
      {{"decode", kCase, "--backend", "cpu", "--context", "1,"}, "--context '1,'"},
      {{"decode", kCase, "--backend", "cpu", "--concurrency", "two"}, "--concurrency 'two'"},
      {{"decode", kCase, "--backend", "cpu", "--rounds", "0"}, "--rounds 0"},
      {{"prefill", kCase, "--backend", "cpu", "--context", "99999999"}, "--context '99999999'"},
      {{"decode", kCase, "--context", "1048576", "--concurrency", "17"}, "tokens together at most"},
      {{"load", kCase, "--backend", "cpu", "--context", "0"}, "--context '0'"},
      {{"load", kCase, "--backend", "cpu", "--random-weights"}, "nothing is loaded then"},
  };
  for (const auto& [words, message] : all) {
    std::vector<std::string> line = {"bench"};
    line.insert(line.end(), words.begin(), words.end());
    const Output output = run_program("assay", line);
    EXPECT_EQ(output.code, 2) << message << ": " << output.err;
    EXPECT_THAT(output.err, HasSubstr(message));
    EXPECT_THAT(output.out, IsEmpty()) << message;
  }
}

}  // namespace
}  // namespace assay::tests
