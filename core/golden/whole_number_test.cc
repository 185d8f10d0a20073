#include "core/golden/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace assay::json {
namespace {

using nlohmann::json;

template <typename T>
std::string whole_of(const char* text) {
  try {
    return std::to_string(whole<T>(json::parse(text)));
  } catch (const json::exception&) {
    return "refused";
  }
}

TEST(WholeNumber, IsWhatFits) {
  EXPECT_EQ(whole_of<int>("-2147483648"), "-2147483648");
  EXPECT_EQ(whole_of<int>("2147483647"), "2147483647");
  EXPECT_EQ(whole_of<int>("8.0"), "8");
  EXPECT_EQ(whole_of<uint64_t>("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(whole_of<int64_t>("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(whole_of<int64_t>("-9223372036854775808.0"), "-9223372036854775808");
  EXPECT_EQ(whole_of<uint32_t>("4294967295.0"), "4294967295");
}

TEST(WholeNumber, AnythingElseIsRefused) {
  for (const char* text : {"2147483648", "-2147483649", "8.5", "1e300", "-1e300", "2147483648.0", "\"8\"", "null", "[]",
                           "true", "18446744073709551615", "88888888888888888888888"}) {
    EXPECT_EQ(whole_of<int>(text), "refused") << text;
  }
  EXPECT_EQ(whole_of<uint64_t>("-1"), "refused");
  EXPECT_EQ(whole_of<uint64_t>("18446744073709551616"), "refused");
  EXPECT_EQ(whole_of<uint64_t>("-1.0"), "refused");
  EXPECT_EQ(whole_of<int64_t>("9223372036854775808"), "refused");
  EXPECT_EQ(whole_of<int64_t>("9223372036854775808.0"), "refused");
  EXPECT_EQ(whole_of<uint8_t>("256"), "refused");
}

TEST(WholeNumber, AMemberMayBeAbsent) {
  const json object = {{"a", 3}};
  EXPECT_EQ(whole(object, "a", 7), 3);
  EXPECT_EQ(whole(object, "b", 7), 7);
  EXPECT_EQ(whole(object, "b", size_t{7}), 7U);
}

}  // namespace
}  // namespace assay::json
