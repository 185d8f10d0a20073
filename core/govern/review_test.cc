#include "core/govern/review.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/govern/testing.h"

namespace assay::govern {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kReviewed =
    R"({"0": {"input_prompt": "Say", "generated_text": "a b", "generated_tokens": [1, 2], "logprobs": [-0.5, -0.25]}})";
constexpr const char* kNew =
    R"({"0": {"input_prompt": "Say", "generated_text": "a c", "generated_tokens": [1, 3], "logprobs": [-0.5, -0.75]}})";

class ReviewTest : public GovernTest {
 protected:
  ReviewTest() {
    write(kGolden, kReviewed);
    test_ = test_case("[generated_tokens]");
    EXPECT_TRUE(record_text(test_, kNew).ok());
  }
  std::vector<PendingItem> items() {
    auto found = pending_items({test_}, "", compare::built_comparator);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *std::move(found) : std::vector<PendingItem>();
  }
  ReviewSummary type(const std::string& keys) {
    std::istringstream in(keys);
    std::ostringstream out;
    const ReviewSummary summary = review(
        items(),
        {.in = &in, .out = &out, .who = "Ada", .now = [] { return "now"; }, .lookup = compare::built_comparator});
    shown_ = out.str();
    return summary;
  }
  bool pending() const { return std::filesystem::exists(at(kPending)); }

  TestCase test_;
  std::string shown_;
};

TEST_F(ReviewTest, AcceptAsksForAReasonAndTakesWhatChanged) {
  EXPECT_EQ(type("a\nthe kernel was wrong\n").accepted, 1U);
  EXPECT_FALSE(pending());
  EXPECT_THAT(shown_, HasSubstr("- golden   \"a |b\""));
  EXPECT_THAT(shown_, HasSubstr("+ recorded \"a |c\""));
  EXPECT_THAT(text_of(kGolden), HasSubstr("the kernel was wrong"));
  EXPECT_THAT(text_of(kGolden), HasSubstr("\"generated_tokens\": [1, 3]"));
  EXPECT_THAT(text_of(kGolden), HasSubstr("-0.75"));
}

TEST_F(ReviewTest, WithoutAReasonNothingIsAccepted) {
  EXPECT_EQ(type("a\n   \nq\n").accepted, 0U);
  EXPECT_EQ(type("a\n").accepted, 0U) << "the input ends at the question";
  EXPECT_TRUE(pending());
  EXPECT_EQ(text_of(kGolden), kReviewed);
}

TEST_F(ReviewTest, ARefusedAcceptanceIsShownAndTheItemStays) {
  const ReviewSummary summary = type("a logprobs\nbecause\ns\n");
  EXPECT_EQ(summary.accepted, 0U);
  EXPECT_EQ(summary.failed, 1U);
  EXPECT_EQ(summary.skipped, 1U);
  EXPECT_THAT(shown_, HasSubstr("not accepted: logprobs cannot be accepted without"));
  EXPECT_TRUE(pending());
}

TEST_F(ReviewTest, RejectSkipQuitAndDetails) {
  EXPECT_EQ(type("s\n").skipped, 1U);
  type("q\n");
  EXPECT_TRUE(pending());
  type("?\nd\nxyz\nq\n");
  EXPECT_THAT(shown_, HasSubstr("first divergent token 1"));
  EXPECT_EQ(type("r\n").rejected, 1U);
  EXPECT_FALSE(pending());
  EXPECT_EQ(text_of(kGolden), kReviewed);
}

TEST_F(ReviewTest, DataHoldsDriftProposalAndWhatToAccept) {
  const auto json = nlohmann::json::parse(items_json(items()));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["case"], "one");
  EXPECT_EQ(json[0]["proposal"], "wrong");
  EXPECT_EQ(json[0]["verdict"], "DIVERGED");
  EXPECT_EQ(json[0]["accept"], nlohmann::json({"generated_tokens", "generated_text", "logprobs"}));
  EXPECT_EQ(json[0]["metrics"][0]["metric"], "generated_tokens");
  EXPECT_EQ(json[0]["texts"][0]["first_divergent_token"], 1);
  EXPECT_TRUE(json[0]["stale"].is_null());
}

TEST_F(ReviewTest, StaleAndBrokenPendingFilesAreItemsThatSayWhy) {
  write(kGolden, kNew);
  EXPECT_THAT(item_text(items()[0], false), HasSubstr("STALE: the golden changed"));
  write(kPending, "{}");
  const std::vector<PendingItem> broken = items();
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_THAT(item_text(broken[0], false), HasSubstr("cannot be reviewed"));
  EXPECT_FALSE(nlohmann::json::parse(items_json(broken))[0]["error"].is_null());
  EXPECT_EQ(type("a\nr\n").rejected, 1U) << "a file that cannot be read can be removed";
}

TEST_F(ReviewTest, NothingThatAPendingFileSaysReachesTheTerminalRaw) {
  std::string text = text_of(kPending);
  const std::string id = "\"run-7\"";
  text.replace(text.find(id, text.find("\"pending\"")), id.size(), R"("\u001b[31m\u202e\nrun")");
  write(kPending, text);
  const std::string shown = item_text(items()[0], true);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_THAT(shown, HasSubstr("by run \\x1b[31m\\u202e\\nrun\n"));
}

TEST_F(ReviewTest, TheGoldenIsNeverWrittenByLooking) {
  item_text(items()[0], true);
  items_json(items());
  EXPECT_EQ(text_of(kGolden), kReviewed);
}

}  // namespace
}  // namespace assay::govern
