#include "tools/make_checkpoint/spec_options.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace assay::tools {
namespace {

using ::testing::HasSubstr;

Result<Invocation> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "make_checkpoint");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

TEST(SpecOptions, HelpNamesEveryOptionOnOneScreen) {
  const std::string help = help_text();
  for (const std::string& name : option_names()) EXPECT_THAT(help, HasSubstr("--" + name));
  EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 25);
}

TEST(SpecOptions, BuildsTheModelAndItsStorage) {
  const Result<Invocation> parsed = parse({"-o",
                                           "d",
                                           "--layers",
                                           "3",
                                           "--heads",
                                           "8",
                                           "--groups",
                                           "2",
                                           "--hidden",
                                           "128",
                                           "--experts",
                                           "4",
                                           "--moe-layer-freq",
                                           "0,1,1",
                                           "--router",
                                           "sigmoid",
                                           "--dtype",
                                           "fp16",
                                           "--chunks",
                                           "*fc1*:-1:3",
                                           "--misalign",
                                           "7",
                                           "--activation",
                                           "gelu",
                                           "--residual-std",
                                           "0.5",
                                           "--files",
                                           "5",
                                           "--common-pt"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const model::CheckpointSpec& spec = parsed->spec;
  EXPECT_EQ(spec.model.kv_channels, 16);
  EXPECT_EQ(spec.model.ffn_hidden_size, 512);
  EXPECT_EQ(spec.model.moe_layers, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(spec.model.moe.score, model::RouterScore::kSigmoid);
  EXPECT_EQ(spec.model.activation, model::Activation::kGeluTanh);
  EXPECT_EQ(spec.dtype, model::Dtype::kFloat16);
  ASSERT_EQ(spec.chunks.size(), 1U);
  EXPECT_EQ(spec.chunks[0].glob, "*fc1*");
  EXPECT_EQ(spec.chunks[0].axis, -1);
  EXPECT_EQ(spec.chunks[0].count, 3);
  EXPECT_EQ(spec.write.residue, 7);
  EXPECT_EQ(spec.write.files, 5);
  EXPECT_EQ(spec.residual_std, 0.5);
  EXPECT_TRUE(spec.write.common_pt);
}

TEST(SpecOptions, RefusesWhatItDoesNotKnowInOneLine) {
  EXPECT_THAT(parse({"--layers", "2"}).status().message(), HasSubstr("no --output"));
  EXPECT_THAT(parse({"-o", "d", "--lay", "2"}).status().message(), HasSubstr("lay"));
  EXPECT_THAT(parse({"-o", "d", "--layers", "two"}).status().message(), HasSubstr("two"));
  EXPECT_THAT(parse({"-o", "d", "--norm", "BatchNorm"}).status().message(),
              HasSubstr("--norm BatchNorm: expected one of LayerNorm, RMSNorm"));
  EXPECT_THAT(parse({"-o", "d", "--experts", "2", "--moe-layer-freq", "0,1,1"}).status().message(),
              HasSubstr("3 layers, expected 2"));
  EXPECT_THAT(parse({"-o", "d", "--chunks", "x"}).status().message(), HasSubstr("GLOB:AXIS:COUNT"));
  EXPECT_THAT(parse({"-o", ""}).status().message(), HasSubstr("no --output"));
  EXPECT_THAT(parse({"-o", "d", "--align", "--misalign", "3"}).status().message(), HasSubstr("give one of them"));
}

TEST(SpecOptions, RefusesNumbersThatMeanNothing) {
  const std::vector<std::vector<const char*>> all = {{"--seed", "-1"},           {"--seed", "18446744073709551616"},
                                                     {"--seed", "1.5"},          {"--std", "-0.1"},
                                                     {"--std", "inf"},           {"--residual-std", "nan"},
                                                     {"--residual-std", "-1"},   {"--files", "0"},
                                                     {"--files", "100001"},      {"--iteration", "-1"},
                                                     {"--iteration", "10000000"}};
  for (const std::vector<const char*>& words : all) {
    std::vector<const char*> line = {"-o", "d"};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_THAT(parse(line).status().message(), HasSubstr(std::string(words[0]) + " " + words[1] + ": expected"));
  }
  EXPECT_EQ(parse({"-o", "d", "--seed", "18446744073709551615"})->spec.seed, UINT64_MAX);
}

}  // namespace
}  // namespace assay::tools
