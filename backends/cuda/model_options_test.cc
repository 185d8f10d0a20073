// Options of the CUDA backend; these tests need no device.
#include "backends/cuda/model_options.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace assay::cuda {
namespace {

using ::testing::HasSubstr;

std::string message(const char* json) { return parse_model_options(json).status().message(); }

TEST(ModelOptions, DefaultsReadTheCheckpointAndKeepTheExactArithmetic) {
  const auto options = parse_model_options("{}");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_GE(options->threads, 1);
  EXPECT_LE(options->threads, 16);
  EXPECT_EQ(options->slice, 0u);
  EXPECT_FALSE(options->plain_decode);
  EXPECT_FALSE(options->fast_prefill);
  EXPECT_FALSE(options->random.has_value());
}

TEST(ModelOptions, EveryWordIsUnderstood) {
  const auto options =
      parse_model_options(R"({"threads":3,"slice":64,"decode":"plain","prefill":"fast","weights":"random:77"})");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->slice, 64u);
  EXPECT_TRUE(options->plain_decode);
  EXPECT_TRUE(options->fast_prefill);
  EXPECT_EQ(options->random, 77u);
  EXPECT_EQ(parse_model_options(R"({"weights":"random"})")->random, 1u);
  EXPECT_EQ(parse_model_options(R"({"weights":"random:18446744073709551615"})")->random, ~uint64_t{0});
}

TEST(ModelOptions, WhatIsWrongIsNamedWithWhatIsExpected) {
  EXPECT_THAT(message(R"({"prefil":"fast"})"), HasSubstr("'prefil' is unknown; known are: threads, slice, decode"));
  EXPECT_THAT(message(R"({"threads":99})"), HasSubstr("'threads': 99, expected 1 .. 16"));
  EXPECT_THAT(message(R"({"slice":0})"), HasSubstr("'slice': 0, expected 1 .. 4096"));
  EXPECT_THAT(message(R"({"decode":"fast"})"), HasSubstr("'decode': fast, expected auto or plain"));
  EXPECT_THAT(message(R"({"prefill":"plain"})"), HasSubstr("'prefill': plain, expected exact or fast"));
  for (const char* word : {"randm", "random:", "random:-1", "random:1x", "random:18446744073709551616", "Random", ""}) {
    EXPECT_THAT(message((std::string(R"({"weights":")") + word + "\"}").c_str()),
                HasSubstr("expected checkpoint, random, or random:SEED"))
        << word;
  }
  EXPECT_THAT(message(R"({"weights":7})"), HasSubstr("'weights': expected a string"));
}

TEST(ModelOptions, TheSchemaNamesEveryOption) {
  const auto schema = nlohmann::json::parse(kModelOptionsSchema);
  for (const char* name : {"threads", "slice", "decode", "prefill", "weights"}) {
    EXPECT_TRUE(schema["properties"].contains(name)) << name;
  }
  EXPECT_EQ(schema["properties"].size(), 5u);
}

}  // namespace
}  // namespace assay::cuda
