#include "core/metamorphic/workload.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace assay::metamorphic {
namespace {

std::vector<int32_t> counting(size_t count, int32_t from) {
  std::vector<int32_t> ids(count);
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

TEST(Workload, ThirtyThreeRequestsOfTwoPromptsAllDifferAlsoInLength) {
  const Workload workload({{"a", counting(40, 0)}, {"b", counting(61, 1000)}}, {}, 0);
  std::set<std::vector<int32_t>> prompts;
  std::set<size_t> lengths;
  for (const Ask& ask : workload.asks(33)) {
    EXPECT_TRUE(prompts.insert(ask.ids).second) << ask.id;
    lengths.insert(ask.ids.size());
  }
  EXPECT_GE(lengths.size(), 8u);
  EXPECT_EQ(workload.ask(1).ids, counting(61, 1000));
  EXPECT_EQ(workload.ask(20).ids, workload.ask(20).ids);
  EXPECT_EQ(workload.ask(20).id, "20");
  EXPECT_EQ(workload.ask(20).prompt_index, 20u);
}

TEST(Workload, LongRequestsRepeatTheirIdsAsFarAsTheLimitAllows) {
  const Workload workload({{"a", counting(40, 0)}}, {}, 0);
  const std::vector<int32_t> ids = workload.long_ask(0).ids;
  ASSERT_EQ(ids.size(), 513u);
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], static_cast<int32_t>(i % 40));
  EXPECT_EQ(Workload({{"a", counting(40, 0)}}, {}, 100).long_ask(0).ids.size(), 100u);
  EXPECT_EQ(Workload({{"a", counting(40, 0)}}, {}, 10).ask(0).ids, counting(10, 0));
  EXPECT_EQ(Workload({{"a", counting(600, 0)}}, {}, 0).long_ask(0).ids.size(), 600u);
}

TEST(Workload, RequestsCanHaveALengthOfTheirOwn) {
  const Workload workload({{"a", counting(40, 0)}}, {}, 520);
  EXPECT_EQ(workload.ask_of(0, 30).ids, counting(30, 0));
  EXPECT_EQ(workload.ask_of(0, 515).ids.size(), 515u) << "longer than the long ones";
  EXPECT_EQ(workload.ask_of(0, 600).ids.size(), 520u) << "as far as the limit allows";
  EXPECT_EQ(workload.ask_of(0, 515).ids[514], 514 % 40);
  EXPECT_TRUE(Workload({{"a", {}}}, {}, 0).ask_of(0, 30).ids.empty());
}

TEST(Workload, WithoutIdsTheTextsAreAsked) {
  const Workload workload({{"a", {}}, {"b", {}}}, {}, 0);
  EXPECT_FALSE(workload.has_ids());
  EXPECT_EQ(workload.ask(3).text, "b");
  EXPECT_TRUE(workload.long_ask(0).ids.empty());
}

}  // namespace
}  // namespace assay::metamorphic
