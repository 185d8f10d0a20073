// From a case, a checkpoint or arguments to a model.
#include "tools/bench/subject.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/temporary_folder.h"

namespace assay::bench {
namespace {

using ::testing::HasSubstr;

const std::string kSource = ASSAY_SOURCE_DIR;
const std::string kCase = kSource + "/testcases/moe/moe_10m_licences";

std::vector<std::string> arguments() {
  return {
      "--num-layers", "3",    "--hidden-size", "64", "--num-attention-heads", "4", "--max-position-embeddings", "128",
      "--vocab-size", "1000", "--bf16"};
}

TEST(Subject, ArgumentsBehindDashesGiveAShape) {
  const auto subject = find_subject({.words = arguments(), .checkpoint = "", .random = true, .variables = {}});
  ASSERT_TRUE(subject.ok()) << subject.status().message();
  EXPECT_EQ(subject->config.num_layers, 3);
  EXPECT_EQ(subject->config.vocab_size, 1024);  // padded
  EXPECT_EQ(subject->config.arithmetic, model::Arithmetic::kBf16);
  EXPECT_EQ(subject->checkpoint, "");
}

TEST(Subject, WhatIsMissingOrUnknownIsNamed) {
  const auto message = [](const SubjectSources& sources) { return find_subject(sources).status().message(); };
  EXPECT_THAT(message({.words = {}, .checkpoint = "", .random = true, .variables = {}}), HasSubstr("no model"));
  EXPECT_THAT(message({.words = arguments(), .checkpoint = "", .random = false, .variables = {}}),
              HasSubstr("no weights: give --checkpoint DIR, --random-weights"));
  EXPECT_THAT(message({.words = {"--num-layer", "3"}, .checkpoint = "", .random = true, .variables = {}}),
              HasSubstr("--num-layers"));
  EXPECT_THAT(message({.words = {"--num-layers", "3"}, .checkpoint = "", .random = true, .variables = {}}),
              HasSubstr("--hidden-size is missing"));
  EXPECT_THAT(message({.words = {"/nowhere"}, .checkpoint = "", .random = true, .variables = {}}),
              HasSubstr("/nowhere"));
  EXPECT_THAT(message({.words = {kCase, "more"}, .checkpoint = "", .random = true, .variables = {}}),
              HasSubstr("more: a second word behind the case"));
  EXPECT_THAT(message({.words = {}, .checkpoint = "/nowhere", .random = false, .variables = {}}),
              HasSubstr("/nowhere"));
}

TEST(Subject, ACheckpointAloneTellsItsShape) {
  const std::string folder = kSource + "/golden/moe_10m_licences/checkpoint";
  const auto subject = find_subject({.words = {}, .checkpoint = folder, .random = false, .variables = {}});
  ASSERT_TRUE(subject.ok()) << subject.status().message();
  EXPECT_EQ(subject->config.num_layers, 4);
  EXPECT_EQ(subject->checkpoint, folder);
  const auto random = find_subject({.words = {}, .checkpoint = folder, .random = true, .variables = {}});
  ASSERT_TRUE(random.ok()) << random.status().message();
  EXPECT_EQ(random->config, subject->config);
  EXPECT_EQ(random->checkpoint, "");
}

TEST(Subject, NamesOfVariablesMayBeAsLongAsTheFile) {
  const tests::TemporaryFolder folder;
  const std::string name(200'000, 'A');
  std::ofstream(folder.path() / "model_config.yaml")
      << "MODE: inference\nMODEL_ARGS:\n  --num-layers: 3\n  --hidden-size: 64\n  --num-attention-heads: 4\n"
         "  --max-position-embeddings: 128\n  --vocab-size: 1000\n  --bf16: true\n  --load: ${"
      << name << "}/$" << name << "_1\n";
  const auto subject =
      find_subject({.words = {folder.path().string()}, .checkpoint = "", .random = true, .variables = {}});
  ASSERT_TRUE(subject.ok()) << subject.status().message().substr(0, 200);
  EXPECT_EQ(subject->config.num_layers, 3);
}

}  // namespace
}  // namespace assay::bench
