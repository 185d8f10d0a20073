#include "core/discover/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/model/config/effective_args.h"
#include "core/discover/case_reader.h"

namespace assay::discover {
namespace {

using model::to_text;
using ::testing::HasSubstr;

Result<ParsedArguments> parse(const std::string& entries) {
  TestCase test_case;
  test_case.config = "f";
  read_config("MODEL_ARGS:\n" + entries, test_case);
  EXPECT_TRUE(test_case.error.ok()) << test_case.error.message();
  return read_arguments(test_case, {});
}

// dest=value of everything given, or the failure.
std::string record(const std::string& entries) {
  const auto parsed = parse(entries);
  if (!parsed.ok()) return parsed.status().message();
  std::string out;
  for (const auto& [name, value] : parsed->record) out += (out.empty() ? "" : " ") + name + "=" + to_text(value);
  return out;
}

TEST(ArgumentTable, HasEveryNameOnceAndAReason) {
  std::set<std::string> names;
  for (const ArgumentInfo& info : argument_table()) {
    for (const std::string& option : info.options) EXPECT_TRUE(names.insert(option).second) << option;
    EXPECT_FALSE(info.reason.empty());
    EXPECT_FALSE(info.dest.empty());
  }
  EXPECT_GT(argument_table().size(), 850u);
}

TEST(ArgumentTable, KnowsNamespaceNamesThatDiffer) {
  EXPECT_EQ(find_argument("--disable-bias-linear")->dest, "add_bias_linear");
  EXPECT_EQ(find_argument("--norm-epsilon")->dest, "layernorm_epsilon");
  EXPECT_EQ(find_argument("--fp8-format")->dest, "fp8");
  EXPECT_EQ(find_argument("--no-rope-fusion")->dest, "apply_rope_fusion");
  EXPECT_EQ(find_argument("--no-load-optim")->dest, "no_load_optim");
  EXPECT_EQ(find_destination("num_layers")->options[0], "--num-layers");
  EXPECT_EQ(find_argument("--num_layers"), nullptr);
}

TEST(ArgumentTable, ClassesSayWhatAnArgumentMeans) {
  EXPECT_EQ(class_name(find_argument("--num-layers")->cls, "static_legacy"), "used");
  EXPECT_EQ(class_name(find_argument("--attention-backend")->cls, "static_legacy"), "substituted");
  EXPECT_EQ(class_name(find_argument("--tensor-model-parallel-size")->cls, "static_legacy"), "substituted");
  EXPECT_EQ(class_name(find_argument("--adam-beta1")->cls, "static_legacy"), "irrelevant");
  EXPECT_EQ(find_argument("--enable-chunked-prefill")->cls, ArgumentClass::kDynamic);
  EXPECT_EQ(class_name(ArgumentClass::kDynamic, "buffered"), "used");
  EXPECT_EQ(class_name(ArgumentClass::kDynamic, "static_legacy"), "irrelevant");
}

TEST(Arguments, ReadsTypesAndFlags) {
  EXPECT_EQ(record("  --num-layers: 3\n  --norm-epsilon: 1e-3\n  --swiglu: true\n  --disable-bias-linear: true\n"
                   "  --top_k: 0\n  --incoming-requests-per-sec: -1\n  --position-embedding-type: rope\n"),
            "add_bias_linear=False incoming_requests_per_sec=-1 layernorm_epsilon=0.001 num_layers=3 "
            "position_embedding_type=rope swiglu=True top_k=0");
}

TEST(Arguments, ReadsListsPatternsAndPairs) {
  EXPECT_EQ(record("  --spec: [a b]\n  --moe-layer-freq: ([0]*1+[1]*2)\n  --window-size: 127,0\n"),
            "moe_layer_freq=[0, 1, 1] spec=[a, b] window_size=[127, 0]");
  EXPECT_EQ(record("  --moe-layer-freq: 2\n  --window-size: (127,0)\n  --prompts: a b\n"),
            "moe_layer_freq=2 prompts=[a b] window_size=[127, 0]");
}

TEST(Arguments, OptionalFlagsHaveTwoForms) {
  EXPECT_EQ(record("  --no-rl-persist-cuda-graphs: true\n  --inference-dynamic-batching-prefix-caching: true\n"),
            "inference_dynamic_batching_enable_prefix_caching=True rl_persist_cuda_graphs=False");
}

TEST(Arguments, TheLastOccurrenceCounts) {
  const auto parsed = parse("  --num-layers: 3\n  --no-pad-vocab-size: true\n  --num-layers=4: true\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(to_text(parsed->record.at("num_layers")), "4");
  EXPECT_TRUE(parsed->given[0].overridden);
  EXPECT_EQ(parsed->find("num_layers")->place.line, 4);
}

TEST(Arguments, AnUnknownArgumentNamesTheNearest) {
  EXPECT_EQ(record("  --num-layer: 3\n"),
            "f:2:16: MODEL_ARGS --num-layer: unknown argument (did you mean '--num-layers'?)");
  EXPECT_EQ(record("  --num_layers: 3\n"),
            "f:2:17: MODEL_ARGS --num_layers: unknown argument (did you mean '--num-layers'?)");
  EXPECT_EQ(record("  --zzzzzzzzzzzz: 3\n"), "f:2:19: MODEL_ARGS --zzzzzzzzzzzz: unknown argument");
}

TEST(Arguments, WrongValuesNameArgumentAndValue) {
  EXPECT_THAT(record("  --num-layers: 1e3\n"), HasSubstr("--num-layers: '1e3' is not an integer"));
  EXPECT_THAT(record("  --num-layers: 3x\n"), HasSubstr("'3x' is not an integer"));
  EXPECT_THAT(record("  --num-layers: 99999999999999999999\n"), HasSubstr("does not fit"));
  EXPECT_THAT(record("  --norm-epsilon: tiny\n"), HasSubstr("'tiny' is not a number"));
  EXPECT_THAT(record("  --norm-epsilon: 0x1p-3\n"), HasSubstr("is not a number"));
  EXPECT_THAT(record("  --normalization: BatchNorm\n"), HasSubstr("'BatchNorm' is none of LayerNorm, RMSNorm"));
  EXPECT_THAT(record("  --timing-log-level: 7\n"), HasSubstr("'7' is none of 0, 1, 2"));
  EXPECT_THAT(record("  --swiglu: false\n"), HasSubstr("'false' is one value too many; a flag is written"));
  EXPECT_THAT(record("  --num-layers: true\n"), HasSubstr("--num-layers: a value is expected"));
  EXPECT_THAT(record("  --num-layers: [3 4]\n"), HasSubstr("'4' is one value too many"));
  EXPECT_THAT(record("  num-layers: 3\n"), HasSubstr("is no argument: its key must begin with --"));
  EXPECT_THAT(record("  --seed: -1e3\n"), HasSubstr("a value is expected"));
}

TEST(Arguments, AWordThatBeginsWithDashesMayBeAPromptWhenItHasBlanks) {
  EXPECT_EQ(record("  --prompts: --not an option\n"), "prompts=[--not an option]");
}

TEST(Arguments, NumbersAreReadAsPythonReadsThem) {
  EXPECT_EQ(*parse_int(" 1_000 "), 1000);
  EXPECT_EQ(*parse_int("+7"), 7);
  EXPECT_FALSE(parse_int("1__0").ok());
  EXPECT_FALSE(parse_int("_1").ok());
  EXPECT_FALSE(parse_int("+-1").ok());
  EXPECT_FALSE(parse_int("").ok());
  EXPECT_FALSE(parse_int("0x10").ok());
  EXPECT_EQ(*parse_float("1_0.5e-1"), 1.05);
  EXPECT_FALSE(parse_float("1,5").ok());
  EXPECT_FALSE(parse_float("1e").ok());
}

std::string pattern(const std::string& text) {
  const auto value = parse_layer_pattern(text);
  return value.ok() ? to_text(*value) : value.status().message();
}

TEST(LayerPattern, EvaluatesListExpressions) {
  EXPECT_EQ(pattern("3"), "3");
  EXPECT_EQ(pattern("[1,0,1]"), "[1, 0, 1]");
  EXPECT_EQ(pattern("([1]*3+[0]*1)*2"), "[1, 1, 1, 0, 1, 1, 1, 0]");
  EXPECT_EQ(pattern("2*[0]+[1]*(1+1)"), "[0, 0, 1, 1]");
  EXPECT_EQ(pattern("[0]*0+[1,]"), "[1]");
}

TEST(LayerPattern, RefusesEverythingElse) {
  for (const char* text : {"[", "[1", "[1]]", "[1]*[2]", "[1]+2", "[[1]]", "[a]", "[1] + [0]", "([1]", "[-1]", "[1]*-1",
                           "[0].__class__", "[1]**2", "x", ""}) {
    EXPECT_FALSE(parse_layer_pattern(text).ok()) << text;
  }
  EXPECT_THAT(pattern("[0]*999999999"), HasSubstr("a number is too large"));
  EXPECT_THAT(pattern("[0]*1000*1000"), HasSubstr("more than 4096 layers"));
  EXPECT_THAT(pattern(std::string(100000, '(') + "[1]"), HasSubstr("nested too deeply"));
  EXPECT_THAT(pattern(std::string(100000, '[')), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace assay::discover
