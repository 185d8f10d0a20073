#include "core/golden/date.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Date, CountsDaysFrom1970) {
  EXPECT_EQ(parse_date("1970-01-01"), 0);
  EXPECT_EQ(parse_date("1970-02-01"), 31);
  EXPECT_EQ(parse_date("2028-03-01").value() - parse_date("2028-02-28").value(), 2);
}

TEST(Date, RefusesOtherFormsAndDaysThatNoCalendarHas) {
  for (const char* text : {"", "2026-1-1", "2026-13-01", "2026-00-10", "2026-02-30", "2027-02-29", "2026/01/01",
                           "2026-01-01 ", "2026-01-01T00:00:00Z", "soon", "20260101", "-026-01-01"}) {
    EXPECT_FALSE(parse_date(text).has_value()) << text;
  }
}

TEST(Date, TodayIsADateAndTheBeginningOfNow) {
  EXPECT_TRUE(parse_date(utc_today()).has_value());
  EXPECT_THAT(utc_now(), testing::MatchesRegex("....-..-..T..:..:..Z"));
}

}  // namespace
}  // namespace assay
