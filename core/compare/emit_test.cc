#include "core/compare/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "assay/sdk.hpp"
#include "core/compare/ulp.h"

namespace assay::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ComparatorOptions, EveryDocumentedMemberIsRead) {
  const auto options = parse_options(sdk::view(
      R"({"tolerance": 0.25, "noise": {"max": 0.5, "p99": 0, "relative": 0.03}, "dtype": "bf16", "logit": 24.5,)"
      R"( "sources": ["a.txt", "b.txt"]})"));
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->tolerance, 0.25);
  EXPECT_EQ(options->noise.max, 0.5);
  EXPECT_EQ(options->noise.p99, 0.0);
  EXPECT_EQ(options->noise.relative, 0.03);
  EXPECT_EQ(options->dtype, "bf16");
  EXPECT_EQ(options->logit, 24.5);
  EXPECT_THAT(options->sources, ElementsAre("a.txt", "b.txt"));
}

TEST(ComparatorOptions, WhatIsNotSaidIsNotKnown) {
  for (const std::string_view text : {"", "{}", R"({"noise": {}})"}) {
    const auto options = parse_options(sdk::view(text));
    ASSERT_TRUE(options.ok()) << text;
    EXPECT_FALSE(options->tolerance || options->logit || options->noise.max || options->noise.relative);
    EXPECT_EQ(options->dtype, "");
  }
}

TEST(ComparatorOptions, MembersOfALaterHostAreLeftAlone) {
  const auto options = parse_options(sdk::view(R"({"tolerance": 0.5, "of_a_later_version": [1]})"));
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->tolerance, 0.5);
}

TEST(ComparatorOptions, WrongOnesAreRefusedByName) {
  const auto refused = [](std::string_view text) {
    const auto options = parse_options(sdk::view(text));
    EXPECT_EQ(options.status().code(), StatusCode::kInvalid) << text;
    EXPECT_EQ(options.status().message().find('\n'), std::string::npos);
    return options.status().message();
  };
  EXPECT_THAT(refused(R"({"tolerance": -1})"), HasSubstr("tolerance is -1, expected a finite number >= 0"));
  EXPECT_THAT(refused(R"({"tolerance": null})"), HasSubstr("tolerance is null"));
  EXPECT_THAT(refused(R"({"logit": "9"})"), HasSubstr("logit is \"9\""));
  EXPECT_THAT(refused(R"({"noise": 1})"), HasSubstr("noise is 1, expected an object"));
  EXPECT_THAT(refused(R"({"noise": {"mean": 1}})"), HasSubstr("unknown option noise.mean"));
  EXPECT_THAT(refused(R"({"noise": {"max": true}})"), HasSubstr("noise.max is true"));
  EXPECT_THAT(refused(R"({"dtype": "fp8"})"), HasSubstr("dtype is \"fp8\", expected \"fp32\""));
  EXPECT_THAT(refused(R"({"dtype": 16})"), HasSubstr("dtype is 16"));
  EXPECT_THAT(refused(R"({"sources": ["a", 1]})"), HasSubstr("expected a list of paths"));
  EXPECT_THAT(refused("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refused("{\n"), HasSubstr("expected a JSON object"));
}

TEST(ComparatorOptions, TheSchemaIsJsonAndNamesEveryMember) {
  const nlohmann::json schema = nlohmann::json::parse(kOptionsSchema);
  for (const char* member : {"tolerance", "noise", "dtype", "logit", "sources"}) {
    EXPECT_TRUE(schema["properties"].contains(member)) << member;
  }
}

TEST(Ulp, FollowsTheBinadeAndTheDtype) {
  EXPECT_EQ(mantissa_bits("bf16"), 8);
  EXPECT_FALSE(mantissa_bits("int8"));
  EXPECT_EQ(ulp(8, 8), 0.0625);  // bf16 from 8 to 16: 2^(3 + 1 - 8)
  EXPECT_EQ(ulp(8, -15.9), 0.0625);
  EXPECT_EQ(ulp(8, 16), 0.125);
  EXPECT_EQ(ulp(11, 8), 0.0078125);
  EXPECT_EQ(ulp(24, 1), std::nextafter(1.0F, 2.0F) - 1.0F);
  EXPECT_EQ(ulp(11, 0), std::ldexp(1.0, -24));  // the least subnormal of fp16
}

}  // namespace
}  // namespace assay::compare
