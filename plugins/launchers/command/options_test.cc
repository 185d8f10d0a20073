#include "plugins/launchers/command/options.h"

#include <gmock/gmock.h>

#include "plugins/launchers/command/hosts.h"

namespace assay::launchers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CommandOptions, AWordIsSaidWithTheOptionItIsIn) {
  EXPECT_THAT(parse_command_options(R"({"start": ["{argv}", "{indx}"]})").status().message(),
              AllOf(HasSubstr("options of launcher command: start, word '{indx}'"), HasSubstr("'index'")));
  EXPECT_THAT(parse_command_options(R"({"start": ["{argv}"], "poll": ["{id"]})").status().message(),
              AllOf(HasSubstr("options of launcher command: poll"), HasSubstr("never closed")));
}

TEST(CommandOptions, AnUnknownNameIsRefusedWithTheNearest) {
  const auto refusal = [](const char* json) { return parse_command_options(json).status().message(); };
  EXPECT_THAT(
      refusal(R"({"start": ["{argv}"], "slot": 1})"),
      AllOf(HasSubstr("unknown member slot (did you mean 'slots'?)"), HasSubstr("lost_codes"), HasSubstr("workers")));
  EXPECT_THAT(refusal(R"({"lost_code": [1]})"), HasSubstr("'lost_codes'"));
  for (const char* none : {"[]", "{", "nonsense"}) EXPECT_THAT(refusal(none), HasSubstr("not a JSON object")) << none;
}

TEST(CommandOptions, BadOnesAreRefused) {
  EXPECT_TRUE(parse_command_options(R"({"start": ["{argv}"]})").ok());
  for (const char* bad :
       {"{}", R"({"start": []})", R"({"start": ["true"]})", R"({"start": ["{argv}"], "hosts": ["a:0"]})",
        R"({"start": ["{argv}"], "hosts": ["-oProxyCommand=x"]})", R"({"start": ["ssh", "{host}", "{script}"]})",
        R"({"start": ["{argv}", "{id}"]})", R"({"start": ["{argv}"], "slot": 1})",
        R"({"start": ["{argv}"], "lost_codes": [0]})", R"({"start": "x"})", R"({"start": ["{{argv}}"]})"}) {
    EXPECT_EQ(parse_command_options(bad).status().code(), StatusCode::kInvalid) << bad;
  }
}

constexpr Hosts::Time after(int milliseconds) { return Hosts::Time(std::chrono::milliseconds(milliseconds)); }

TEST(Hosts, TakeTurnsWhileTheyHaveFreeSlots) {
  CommandOptions options;
  options.hosts = {{"a", 2}, {"b", 1}};
  Hosts hosts(options);
  EXPECT_EQ(hosts.take(after(1)), 0u);
  EXPECT_EQ(hosts.take(after(1)), 1u);
  EXPECT_EQ(hosts.take(after(1)), 0u);
  EXPECT_EQ(hosts.take(after(1)), std::nullopt);
  hosts.give_back(1);
  EXPECT_EQ(hosts.take(after(1)), 1u);
}

TEST(Hosts, OneThatFailsAgainAndAgainIsLeftOut) {
  CommandOptions options;
  options.hosts = {{"a", 9}, {"b", 9}};
  options.host_failures = 2;
  Hosts hosts(options);
  hosts.failed(0, after(1), after(2));
  hosts.worked(0);
  hosts.failed(0, after(3), after(4));
  EXPECT_FALSE(hosts.none_left());
  hosts.failed(0, after(5), after(6));
  EXPECT_EQ(hosts.take(after(9000)), 1u);
  EXPECT_EQ(hosts.take(after(9000)), 1u);
  hosts.failed(1, after(7), after(8));
  hosts.failed(1, after(9), after(10));
  EXPECT_TRUE(hosts.none_left());
  EXPECT_EQ(hosts.take(after(9000)), std::nullopt);
}

TEST(Hosts, WhatFailsTogetherIsOneFailureAndTheHostRestsLongerEachTime) {
  CommandOptions options;
  options.hosts = {{"a", 9}};
  Hosts hosts(options);
  for (int i = 0; i < 8; ++i) hosts.failed(0, after(i), after(100 + i));
  EXPECT_FALSE(hosts.none_left());
  EXPECT_EQ(hosts.take(after(1099)), std::nullopt);
  EXPECT_EQ(hosts.take(after(1100)), 0u);
  hosts.failed(0, after(1100), after(2000));
  EXPECT_EQ(hosts.take(after(3999)), std::nullopt);
  EXPECT_EQ(hosts.take(after(4000)), 0u);
  hosts.failed(0, after(4000), after(4001));
  EXPECT_TRUE(hosts.none_left()) << "the default is three in a row";
}

}  // namespace
}  // namespace assay::launchers
