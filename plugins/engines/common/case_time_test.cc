#include "plugins/engines/common/case_time.h"

#include <gmock/gmock.h>

namespace assay::engines {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(CaseTime, ATenthIsLeftForJudgingAndAtMostTenSeconds) {
  EXPECT_DOUBLE_EQ(reserve_of(2), 0.2);
  EXPECT_DOUBLE_EQ(reserve_of(100), 10);
  EXPECT_DOUBLE_EQ(reserve_of(600), 10);
}

TEST(CaseTime, EndsBeforeTheCaseDoes) {
  const CaseTime::Clock::time_point began{seconds(1000)};
  EXPECT_EQ((CaseTime{.seconds = 20, .began = began}.ends()), began + seconds(18));
  EXPECT_EQ((CaseTime{.seconds = 0.5, .began = began}.ends()), began + milliseconds(450));
  EXPECT_EQ((CaseTime{.seconds = 600, .began = began}.ends()), began + seconds(590));
  EXPECT_EQ((CaseTime{.seconds = 0, .began = began}.ends()), CaseTime::Clock::time_point::max()) << "no limit";
}

TEST(CaseTime, NamesTheLimit) {
  EXPECT_EQ(CaseTime{.seconds = 120}.text(),
            "the case's time is up (ASSAY.timeout is 120 s, 10 s of them are kept for judging)");
  EXPECT_EQ(CaseTime().text(), "");
}

TEST(CaseTime, IsReadFromTheOption) {
  const Result<CaseTime> read = read_case_time(R"({"seconds": 1.5, "began_ns": 2000000000})", "case_time");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->seconds, 1.5);
  EXPECT_EQ(read->began.time_since_epoch(), seconds(2));
  EXPECT_EQ(read_case_time("{}", "case_time")->seconds, 0);
  for (const char* wrong : {R"({"seconds": -1})", R"({"seconds": "1"})", R"({"seconds": 1e10})", R"({"began_ns": -1})",
                            R"({"second": 1})", "[]"}) {
    const Result<CaseTime> refused = read_case_time(wrong, "the thing");
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalid) << wrong;
    EXPECT_THAT(refused.status().message(), HasSubstr("the thing")) << wrong;
  }
}

}  // namespace
}  // namespace assay::engines
