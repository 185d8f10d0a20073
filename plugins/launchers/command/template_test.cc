#include "plugins/launchers/command/template.h"

#include <gmock/gmock.h>

#include "plugins/launchers/command/hosts.h"

namespace assay::launchers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Template, AVariableAloneBecomesAllItsWords) {
  const TemplateValues values = {{"argv", {"/bin/w", "a b"}}, {"environment", {}}, {"host", {"n1"}}};
  EXPECT_THAT(expand_template({"env", "{environment}", "{argv}"}, values), ElementsAre("env", "/bin/w", "a b"));
  EXPECT_THAT(expand_template({"--on={host}", "x {argv}", "{{host}}"}, values),
              ElementsAre("--on=n1", "x /bin/w a b", "{host}"));
}

TEST(Template, ValuesAreNotExpandedAgain) {
  EXPECT_THAT(expand_template({"{a}", "-{a}-"}, {{"a", {"{b} $x"}}, {"b", {"no"}}}), ElementsAre("{b} $x", "-{b} $x-"));
}

TEST(Template, AnUnknownVariableOrALoneBraceIsRefused) {
  EXPECT_TRUE(check_template({"{host}", "{{x}}", "a"}, {"host"}, "start").ok());
  EXPECT_THAT(check_template({"{hots}"}, {"host", "log"}, "start").message(),
              AllOf(HasSubstr("{hots}"), HasSubstr("'host'"), HasSubstr("{log}")));
  EXPECT_FALSE(check_template({"{host"}, {"host"}, "start").ok());
  EXPECT_FALSE(check_template({"a}"}, {"host"}, "start").ok());
}

TEST(CommandOptions, BadOnesAreRefused) {
  EXPECT_TRUE(parse_command_options(R"({"start": ["{argv}"]})").ok());
  for (const char* bad :
       {"{}", R"({"start": []})", R"({"start": ["true"]})", R"({"start": ["{argv}"], "hosts": ["a:0"]})",
        R"({"start": ["{argv}"], "hosts": ["-oProxyCommand=x"]})", R"({"start": ["ssh", "{host}", "{script}"]})",
        R"({"start": ["{argv}", "{id}"]})", R"({"start": ["{argv}"], "slot": 1})",
        R"({"start": ["{argv}"], "lost_codes": [0]})", R"({"start": "x"})"}) {
    EXPECT_EQ(parse_command_options(bad).status().code(), StatusCode::kInvalid) << bad;
  }
}

TEST(Hosts, TakeTurnsWhileTheyHaveFreeSlots) {
  CommandOptions options;
  options.hosts = {{"a", 2}, {"b", 1}};
  Hosts hosts(options);
  EXPECT_EQ(hosts.take(), 0u);
  EXPECT_EQ(hosts.take(), 1u);
  EXPECT_EQ(hosts.take(), 0u);
  EXPECT_EQ(hosts.take(), std::nullopt);
  hosts.give_back(1);
  EXPECT_EQ(hosts.take(), 1u);
}

TEST(Hosts, OneThatFailsAgainAndAgainIsLeftOut) {
  CommandOptions options;
  options.hosts = {{"a", 9}, {"b", 9}};
  options.host_failures = 2;
  Hosts hosts(options);
  hosts.failed(0);
  hosts.worked(0);
  hosts.failed(0);
  EXPECT_FALSE(hosts.none_left());
  hosts.failed(0);
  EXPECT_EQ(hosts.take(), 1u);
  EXPECT_EQ(hosts.take(), 1u);
  hosts.failed(1);
  hosts.failed(1);
  EXPECT_TRUE(hosts.none_left());
  EXPECT_EQ(hosts.take(), std::nullopt);
}

}  // namespace
}  // namespace assay::launchers
