#include "core/compare/same_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay::compare {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

RequestRecord record() {
  RequestRecord made;
  made.id = "0";
  made.prompt_ids = {1, 2};
  made.tokens = {3, 4};
  made.text = "ab";
  made.logprobs = {-1, NAN, -0.5};
  made.top_n = TopLists{{{"a", -1, 7}, {"b", -2, 8}}, {1, 1}};
  made.routing = Routing{{0, 1, 2, 3}, 2, 1, 2, {}, {0.5F, 0.25F}};
  return made;
}

// Of two results, one of which `change` has been at.
template <class Change>
std::string difference(Change&& change) {
  ResultSet first, other;
  first.requests = {record()};
  other.requests = {record()};
  change(other.requests[0]);
  return first_difference(first, other);
}

TEST(SameResults, EqualBitsAreEqualNanIncluded) {
  EXPECT_THAT(difference([](RequestRecord&) {}), IsEmpty());
}

TEST(SameResults, TheFirstFieldAndIndexAreNamed) {
  EXPECT_EQ(difference([](RequestRecord& r) { (*r.tokens)[1] = 9; }), "request 0: token[1]: 4 and 9");
  EXPECT_EQ(difference([](RequestRecord& r) { r.tokens->pop_back(); }), "request 0: token: 2 and 1 values");
  EXPECT_EQ(difference([](RequestRecord& r) { (*r.prompt_ids)[0] = 9; }), "request 0: prompt ids[0]: 1 and 9");
  EXPECT_EQ(difference([](RequestRecord& r) { *r.text = "ax"; }), "request 0: text, code point 1: \"a|b\" and \"a|x\"");
  EXPECT_EQ(difference([](RequestRecord& r) { (*r.logprobs)[2] = -0.75; }), "request 0: logprobs[2]: -0.5 and -0.75");
  EXPECT_EQ(difference([](RequestRecord& r) { r.top_n->entries[1].logprob = -3; }),
            "request 0: top-n[1], rank 0: \"b\" -2 and \"b\" -3");
  EXPECT_EQ(difference([](RequestRecord& r) { r.routing->experts[3] = 5; }),
            "request 0: routing, token 1, layer 0: expert 3 and 5");
  EXPECT_EQ(difference([](RequestRecord& r) { r.routing->margins[1] = 0; }),
            "request 0: routing margins[1]: 0.25 and 0");
  EXPECT_EQ(difference([](RequestRecord& r) { r.logprobs.reset(); }), "request 0: logprobs, which only the first has");
  EXPECT_EQ(difference([](RequestRecord& r) { r.id = "7"; }), "request ids: 0 and 7");
}

TEST(SameResults, SignOfZeroIsADifferenceAndTimesAreNot) {
  EXPECT_THAT(difference([](RequestRecord& r) {
                r.tpot = {1, 2};
                r.latency = 3;
              }),
              IsEmpty());
  ResultSet zero, minus;
  zero.requests.resize(1);
  zero.requests[0].logprobs = {0.0};
  minus.requests.resize(1);
  minus.requests[0].logprobs = {-0.0};
  EXPECT_THAT(first_difference(zero, minus), HasSubstr("logprobs[0]: 0 and -0"));
  EXPECT_THAT(first_difference(zero, ResultSet()), HasSubstr("requests: 1 and 0"));
}

}  // namespace
}  // namespace assay::compare
