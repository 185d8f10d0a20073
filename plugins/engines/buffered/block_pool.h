// Which blocks of the KV cache are taken, and by how many.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace assay::engines {

// Blocks 0 .. count-1, each with a number of holders. Not thread-safe. Giving back what nobody holds is a bug of the
// caller (asserted).
class BlockPool {
 public:
  explicit BlockPool(size_t count);

  size_t size() const { return holders_.size(); }
  size_t free() const { return free_.size(); }
  uint32_t holders(int32_t block) const { return holders_[static_cast<size_t>(block)]; }

  // A block that nobody holds, now held once: the one given back last, else the lowest, so that a pool that is larger
  // than what is needed stays untouched at its end. nullopt: none is free.
  std::optional<int32_t> take();
  // One more holder of a block that has one.
  void hold(int32_t block);
  // One holder less; without holders the block is free.
  void give_back(int32_t block);

 private:
  std::vector<uint32_t> holders_;  // (count)
  std::vector<int32_t> free_;      // the last one is next
};

}  // namespace assay::engines
