#include "plugins/engines/buffered/block_pool.h"

#include <cassert>

namespace assay::engines {

BlockPool::BlockPool(size_t count) : holders_(count, 0) {
  free_.reserve(count);
  for (size_t i = count; i > 0; --i) free_.push_back(static_cast<int32_t>(i - 1));
}

std::optional<int32_t> BlockPool::take() {
  if (free_.empty()) return std::nullopt;
  const int32_t block = free_.back();
  free_.pop_back();
  assert(holders(block) == 0);
  holders_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::hold(int32_t block) {
  assert(holders(block) > 0);
  ++holders_[static_cast<size_t>(block)];
}

void BlockPool::give_back(int32_t block) {
  assert(holders(block) > 0);
  if (--holders_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace assay::engines
