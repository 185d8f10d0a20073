#include "plugins/engines/buffered/prefix_cache.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace assay::engines {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kBlock = 2;

// A sequence as the scheduler handles it.
struct Holder {
  std::vector<int32_t> ids;
  std::vector<int32_t> blocks;
};

class Prefix : public testing::Test {
 protected:
  void make(size_t blocks, Eviction eviction) {
    pool_ = BlockPool(blocks);
    cache_.emplace(&pool_, kBlock, eviction);
  }
  // Matches, takes the rest, publishes. False: there is no room, and nothing is held.
  bool start(const std::vector<int32_t>& ids, Holder* holder) {
    const size_t full = ids.size() / kBlock;
    holder->ids = ids;
    holder->blocks = cache_->match(ids, full);
    const size_t known = holder->blocks.size();
    if (cache_->available() < full - known) {
      end(holder);
      return false;
    }
    while (holder->blocks.size() < full) holder->blocks.push_back(*cache_->take());
    cache_->publish(std::span(ids).first(full * kBlock), holder->blocks, known);
    return true;
  }
  void end(Holder* holder) {
    for (; !holder->blocks.empty(); holder->blocks.pop_back()) cache_->give_back(holder->blocks.back());
  }

  BlockPool pool_{0};
  std::optional<PrefixCache> cache_;
};

TEST_F(Prefix, FindsTheLongestChainOfFullBlocks) {
  make(8, Eviction::kLru);
  Holder a;
  ASSERT_TRUE(start({1, 2, 3, 4, 5}, &a));
  EXPECT_EQ(cache_->match(std::vector<int32_t>{1, 2, 3, 4, 9, 9}, 9), a.blocks);
  EXPECT_EQ(cache_->matching(std::vector<int32_t>{1, 2, 3, 4, 9, 9}, 1), 1U) << "no more than asked for";
  EXPECT_EQ(cache_->matching(std::vector<int32_t>{1, 2, 3, 5}, 9), 1U);
  EXPECT_EQ(cache_->matching(std::vector<int32_t>{3, 4, 1, 2}, 9), 0U) << "a block counts only behind its own prefix";
  EXPECT_EQ(pool_.holders(a.blocks[0]), 3U) << "its sequence, the match and the cache";
}

TEST_F(Prefix, ReplacesAnEqualBlockByTheOneThatIsKnown) {
  make(4, Eviction::kLru);
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  Holder a{ids, {*cache_->take(), *cache_->take()}};
  Holder b{ids, {*cache_->take(), *cache_->take()}};
  cache_->publish(ids, a.blocks, 0);
  const std::vector<int32_t> own = b.blocks;
  cache_->publish(ids, b.blocks, 0);
  EXPECT_EQ(b.blocks, a.blocks);
  EXPECT_EQ(pool_.holders(own[0]), 0U);
  EXPECT_EQ(cache_->entries(), 2U);
}

TEST_F(Prefix, ForgetsABlockWithItsLastHolderUnlessItIsToBeKept) {
  for (const Eviction eviction : {Eviction::kRefZero, Eviction::kLru}) {
    make(4, eviction);
    Holder a;
    ASSERT_TRUE(start({1, 2, 3, 4}, &a));
    end(&a);
    EXPECT_EQ(cache_->entries(), eviction == Eviction::kLru ? 2U : 0U);
    EXPECT_EQ(cache_->available(), 4U);
  }
}

TEST_F(Prefix, EvictsTheLeastRecentlyUsedAndChildrenBeforeParents) {
  make(4, Eviction::kLru);
  Holder a;
  Holder b;
  ASSERT_TRUE(start({1, 2, 3, 4}, &a));
  end(&a);
  ASSERT_TRUE(start({5, 6, 7, 8}, &b));
  end(&b);
  EXPECT_EQ(cache_->matching(std::vector<int32_t>{1, 2, 3, 4}, 2), 2U) << "asking alone is no use";
  const int32_t taken = *cache_->take();
  EXPECT_EQ(cache_->matching(std::vector<int32_t>{1, 2, 3, 4}, 2), 1U) << "the child went";
  EXPECT_EQ(cache_->matching(std::vector<int32_t>{5, 6, 7, 8}, 2), 2U);
  EXPECT_EQ(cache_->evictions(), 1U);
  cache_->give_back(taken);
  EXPECT_EQ(cache_->available(), 4U);
}

TEST_F(Prefix, NeverGivesAwayWhatASequenceHolds) {
  make(2, Eviction::kLru);
  Holder a;
  ASSERT_TRUE(start({1, 2, 3, 4}, &a));
  EXPECT_EQ(cache_->available(), 0U);
  EXPECT_EQ(cache_->take(), std::nullopt);
  end(&a);
  EXPECT_EQ(cache_->available(), 2U);
}

// Random sequences over a tiny alphabet, so that prefixes meet all the time. A block's content is what its last writer
// put there; a match must find exactly the ids asked for.
TEST_F(Prefix, HitsHoldWhatTheyPromiseOverRandomOperations) {
  for (const Eviction eviction : {Eviction::kRefZero, Eviction::kLru}) {
    std::mt19937 random(11);
    make(17, eviction);
    std::map<int32_t, std::vector<int32_t>> content;  // of each block: the whole chain that it ends
    std::vector<Holder> holders;
    uint64_t hits = 0;
    for (int step = 0; step < 5000; ++step) {
      if (random() % 2 == 0 || holders.empty()) {
        std::vector<int32_t> ids(random() % 9 + kBlock);
        for (int32_t& id : ids) id = static_cast<int32_t>(random() % 2);
        Holder holder{ids, cache_->match(ids, ids.size() / kBlock)};
        const size_t known = holder.blocks.size();
        const size_t full = ids.size() / kBlock;
        hits += known;
        for (size_t i = 0; i < known; ++i) {
          const std::vector<int32_t> chain(ids.begin(), ids.begin() + static_cast<ptrdiff_t>((i + 1) * kBlock));
          ASSERT_EQ(content[holder.blocks[i]], chain) << "a wrong hit";
        }
        if (cache_->available() < full - known) {
          end(&holder);
        } else {
          for (size_t i = known; i < full; ++i) {
            holder.blocks.push_back(*cache_->take());
            content[holder.blocks[i]].assign(ids.begin(), ids.begin() + static_cast<ptrdiff_t>((i + 1) * kBlock));
          }
          cache_->publish(std::span(ids).first(full * kBlock), holder.blocks, known);
          holders.push_back(holder);
        }
      } else {
        const size_t at = random() % holders.size();
        end(&holders[at]);
        holders.erase(holders.begin() + static_cast<ptrdiff_t>(at));
      }
      std::set<int32_t> held;
      for (const Holder& holder : holders) held.insert(holder.blocks.begin(), holder.blocks.end());
      ASSERT_EQ(cache_->available(), pool_.size() - held.size());
    }
    EXPECT_GT(hits, 100U);
    for (Holder& holder : holders) end(&holder);
    EXPECT_EQ(cache_->available(), pool_.size());
    EXPECT_EQ(cache_->entries() > 0, eviction == Eviction::kLru);
  }
}

}  // namespace
}  // namespace assay::engines
