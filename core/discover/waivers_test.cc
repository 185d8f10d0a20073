#include "core/discover/waivers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/discover/case_reader.h"

namespace assay::discover {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TestCase read_waivers(const std::string& waivers) {
  TestCase test_case;
  test_case.config = "f";
  read_config("MODEL_ARGS:\nASSAY:\n  waivers: " + waivers + "\n", test_case);
  return test_case;
}

// The five mandatory members, one of them replaced.
std::string with(const std::string& member, const std::string& value) {
  std::string text = "[{";
  for (const auto& [name, usual] : {std::pair<std::string, std::string>{"reason", "top-k ties"},
                                    {"owner", "kim"},
                                    {"issue", "'#12'"},
                                    {"expires", "2027-01-31"},
                                    {"verdicts", "[DRIFT]"}}) {
    text += name + ": " + (name == member ? value : usual) + ", ";
  }
  return text + "}]";
}

TEST(Waivers, EveryMemberIsRead) {
  const TestCase test_case = read_waivers(
      "\n    - {reason: top-k ties, owner: kim, issue: 12, expires: 2027-01-31, verdicts: [DRIFT, FLAKY],"
      " metrics: logprobs, platforms: [cpu_x86_64], environments: [dev, lts], expect_failure: true}"
      "\n    - {reason: a, owner: b, issue: c, expires: '2020-01-01', verdicts: CRASHED}");
  ASSERT_TRUE(test_case.error.ok()) << test_case.error.message();
  ASSERT_THAT(test_case.assay.waivers, SizeIs(2));
  const Waiver& waiver = test_case.assay.waivers[0];
  EXPECT_EQ(waiver.reason, "top-k ties");
  EXPECT_EQ(waiver.owner, "kim");
  EXPECT_EQ(waiver.issue, "12");
  EXPECT_EQ(waiver.expires, "2027-01-31");
  EXPECT_THAT(waiver.verdicts, ElementsAre(Verdict::kDrift, Verdict::kFlaky));
  EXPECT_THAT(waiver.metrics, ElementsAre("logprobs"));
  EXPECT_THAT(waiver.platforms, ElementsAre("cpu_x86_64"));
  EXPECT_THAT(waiver.environments, ElementsAre("dev", "lts"));
  EXPECT_TRUE(waiver.expect_failure);
  EXPECT_THAT(test_case.assay.waivers[1].verdicts, ElementsAre(Verdict::kCrashed));
  EXPECT_FALSE(test_case.assay.waivers[1].expect_failure);
}

TEST(Waivers, NullIsNone) { EXPECT_THAT(read_waivers("~").assay.waivers, IsEmpty()); }

TEST(Waivers, EachOfTheFiveMembersIsMandatory) {
  const std::string all = with("", "");
  ASSERT_TRUE(read_waivers(all).error.ok()) << read_waivers(all).error.message();
  for (const std::string member : {"reason", "owner", "issue", "expires", "verdicts"}) {
    std::string text = all;
    const size_t begin = text.find(member + ": ");
    const size_t end = text.find(", ", begin);
    text.erase(begin, end + 2 - begin);
    EXPECT_EQ(read_waivers(text).error.message(), "f:3:13: ASSAY.waivers[0]: " + member + " is missing") << text;
  }
}

TEST(Waivers, MistakesAreNamedWithTheirPlaceAndTheNearestName) {
  const auto error = [](const std::string& text) { return read_waivers(text).error.message(); };
  EXPECT_EQ(error(with("expires", "2026-02-30")),
            "f:3:69: ASSAY.waivers[0]: expires '2026-02-30' is no day such as 2027-01-31");
  EXPECT_EQ(error(with("verdicts", "[DRIFTED]")),
            "f:3:91: ASSAY.waivers[0]: verdict 'DRIFTED' is unknown (did you mean 'DRIFT'?)");
  EXPECT_EQ(error(with("verdicts", "[SKIPPED]")),
            "f:3:91: ASSAY.waivers[0]: verdict SKIPPED cannot be waived, as it is no failure of a judged case");
  EXPECT_EQ(error(with("verdicts", "[]")), "f:3:91: ASSAY.waivers[0]: verdicts must be a text or a list of texts");
  EXPECT_EQ(error(with("owner", "''")), "f:3:41: ASSAY.waivers[0]: owner must be a text");
  EXPECT_EQ(error(with("owner", "' \u3000'")), "f:3:41: ASSAY.waivers[0]: owner must be a text") << "blank";
  EXPECT_EQ(error(with("reason", "[a]")), "f:3:22: ASSAY.waivers[0]: reason must be a text");
  EXPECT_EQ(error(with("reason", "'  '")), "f:3:22: ASSAY.waivers[0]: reason must be a text");
  EXPECT_EQ(error("[{metric: a}]"), "f:3:22: ASSAY.waivers[0]: metric is unknown (did you mean 'metrics'?)");
  EXPECT_EQ(error("soon"), "f:3:12: ASSAY.waivers must be a list of mappings");
  EXPECT_EQ(error("[soon]"),
            "f:3:13: ASSAY.waivers[0] must be a mapping with reason, owner, issue, expires and verdicts");
  std::string maybe = with("", "");
  maybe.insert(maybe.size() - 2, "expect_failure: maybe");
  EXPECT_EQ(error(maybe), "f:3:116: ASSAY.waivers[0]: expect_failure must be true or false");
}

}  // namespace
}  // namespace assay::discover
