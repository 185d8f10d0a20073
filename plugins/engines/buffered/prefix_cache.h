// Full blocks of the KV cache by what they hold, so that sequences that begin alike share them.
//
// A block is known by its chain: all token ids from position 0 to its end. Chains are found by a hash over the parent's
// hash and the block's own ids, and taken only when parent and ids are the very same: a collision costs a comparison,
// never a wrong hit.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "plugins/engines/buffered/block_pool.h"

namespace assay::engines {

enum class Eviction {
  kRefZero,  // a block is forgotten when no sequence holds it any more
  kLru,      // it is kept until the pool needs it; the one unused for longest goes first
};

// Owns which sequence holds which block: sequences take and give back their blocks here, not at the pool. Borrows the
// pool, which outlives it. Not thread-safe.
// A sequence that holds a block of a chain holds its parents too: `match` and `publish` see to that, as long as
// sequences give blocks back all together or from the end.
class PrefixCache {
 public:
  PrefixCache(BlockPool* pool, size_t block_size, Eviction eviction)
      : pool_(pool), block_size_(block_size), eviction_(eviction) {}

  // Blocks that can be had now: free ones, and those that only the cache holds.
  size_t available() const { return pool_->free() + idle_; }
  size_t entries() const { return entries_.size(); }
  uint64_t evictions() const { return evictions_; }

  // A block of its own for a sequence: a free one, else the least recently used that no sequence holds. nullopt: none.
  std::optional<int32_t> take();
  // A sequence needs `block` no more.
  void give_back(int32_t block);

  // The longest known chain of full blocks that `ids` begins with, at most `most` blocks, each held once more for the
  // caller.
  std::vector<int32_t> match(std::span<const int32_t> ids, size_t most);
  // Blocks that match would give, without holding them.
  size_t matching(std::span<const int32_t> ids, size_t most) const;

  // `blocks` hold the keys and values of `ids`, the first `known` of them by `match` or an earlier `publish`. Makes
  // the others known too. Where an equal block is known already, the sequence's own is given back and replaced by it.
  // ids.size() is blocks.size() full blocks.
  void publish(std::span<const int32_t> ids, std::span<int32_t> blocks, size_t known);

 private:
  using Serial = uint64_t;  // of an entry; 0: the root, the parent of first blocks

  struct Entry {
    Serial serial = 0;
    Serial parent = 0;
    uint64_t hash = 0;         // of the whole chain
    std::vector<int32_t> ids;  // (block_size)
    std::list<int32_t>::iterator age;
  };

  static uint64_t hash_of(uint64_t parent, std::span<const int32_t> ids);
  // The entry's block; nullopt: unknown.
  std::optional<int32_t> find(Serial parent, uint64_t hash, std::span<const int32_t> ids) const;
  std::vector<int32_t> chain(std::span<const int32_t> ids, size_t most) const;
  // Most recently used from now on, the last of the chain least so: children go before their parents.
  void touch(std::span<const int32_t> blocks);
  void hold(int32_t block);
  void forget(int32_t block);

  BlockPool* pool_;
  size_t block_size_;
  Eviction eviction_;
  std::unordered_map<int32_t, Entry> entries_;          // by block
  std::unordered_multimap<uint64_t, int32_t> by_hash_;  // chain hash to block
  std::list<int32_t> ages_;                             // blocks with an entry, least recently used first
  size_t idle_ = 0;                                     // entries that no sequence holds
  Serial last_serial_ = 0;
  uint64_t evictions_ = 0;
};

}  // namespace assay::engines
