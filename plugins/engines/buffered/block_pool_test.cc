#include "plugins/engines/buffered/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace assay::engines {
namespace {

TEST(BlockPool, GivesTheLowestBlocksFirstAndTheLastOneReturnedAgain) {
  BlockPool pool(3);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  pool.give_back(0);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 2);
  EXPECT_EQ(pool.take(), std::nullopt);
}

TEST(BlockPool, KeepsABlockUntilItsLastHolderGivesItBack) {
  BlockPool pool(1);
  const int32_t block = *pool.take();
  pool.hold(block);
  pool.give_back(block);
  EXPECT_EQ(pool.free(), 0U);
  pool.give_back(block);
  EXPECT_EQ(pool.free(), 1U);
}

// Holders of the pool always match those that a plain list counts; no block is lost, none given out twice.
TEST(BlockPool, AgreesWithAPlainCountOverRandomOperations) {
  std::mt19937 random(7);
  BlockPool pool(13);
  std::vector<int32_t> held;  // one entry for each holder
  for (int step = 0; step < 20000; ++step) {
    const uint64_t what = random() % 3;
    if (what == 0) {
      const std::set<int32_t> before(held.begin(), held.end());
      const std::optional<int32_t> block = pool.take();
      ASSERT_EQ(block.has_value(), before.size() < pool.size());
      if (!block) continue;
      ASSERT_FALSE(before.contains(*block)) << "it was held";
      held.push_back(*block);
    } else if (!held.empty()) {
      const size_t at = random() % held.size();
      if (what == 1) {
        pool.hold(held[at]);
        held.push_back(held[at]);
      } else {
        pool.give_back(held[at]);
        held.erase(held.begin() + static_cast<ptrdiff_t>(at));
      }
    }
    std::map<int32_t, uint32_t> count;
    for (const int32_t block : held) ++count[block];
    ASSERT_EQ(pool.free(), pool.size() - count.size());
    for (int32_t block = 0; block < 13; ++block) ASSERT_EQ(pool.holders(block), count[block]);
  }
}

}  // namespace
}  // namespace assay::engines
