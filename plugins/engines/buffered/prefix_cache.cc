#include "plugins/engines/buffered/prefix_cache.h"

#include <algorithm>
#include <cassert>

namespace assay::engines {

std::optional<int32_t> PrefixCache::take() {
  if (const std::optional<int32_t> block = pool_->take()) return block;
  if (idle_ == 0) return std::nullopt;
  for (const int32_t block : ages_) {
    if (pool_->holders(block) > 1) continue;
    ++evictions_;
    --idle_;
    forget(block);
    pool_->give_back(block);
    return pool_->take();
  }
  assert(false && "idle blocks are among the entries");
  return std::nullopt;
}

void PrefixCache::give_back(int32_t block) {
  const bool known = entries_.contains(block);
  if (known && eviction_ == Eviction::kRefZero && pool_->holders(block) == 1) forget(block);
  pool_->give_back(block);
  if (known && eviction_ == Eviction::kLru && pool_->holders(block) == 1) ++idle_;
}

std::vector<int32_t> PrefixCache::match(std::span<const int32_t> ids, size_t most) {
  std::vector<int32_t> blocks = chain(ids, most);
  for (const int32_t block : blocks) hold(block);
  touch(blocks);
  return blocks;
}

size_t PrefixCache::matching(std::span<const int32_t> ids, size_t most) const { return chain(ids, most).size(); }

void PrefixCache::publish(std::span<const int32_t> ids, std::span<int32_t> blocks, size_t known) {
  assert(ids.size() == blocks.size() * block_size_ && known <= blocks.size());
  Serial parent = known > 0 ? entries_.at(blocks[known - 1]).serial : 0;
  uint64_t hash = known > 0 ? entries_.at(blocks[known - 1]).hash : 0;
  for (size_t i = known; i < blocks.size(); ++i) {
    const std::span<const int32_t> own = ids.subspan(i * block_size_, block_size_);
    hash = hash_of(hash, own);
    if (const std::optional<int32_t> equal = find(parent, hash, own)) {
      hold(*equal);
      pool_->give_back(blocks[i]);
      blocks[i] = *equal;
    } else {
      Entry entry{.serial = ++last_serial_,
                  .parent = parent,
                  .hash = hash,
                  .ids = {own.begin(), own.end()},
                  .age = ages_.insert(ages_.end(), blocks[i])};
      entries_.emplace(blocks[i], std::move(entry));
      by_hash_.emplace(hash, blocks[i]);
      if (eviction_ == Eviction::kLru) pool_->hold(blocks[i]);
    }
    parent = entries_.at(blocks[i]).serial;
  }
  touch(blocks);
}

uint64_t PrefixCache::hash_of(uint64_t parent, std::span<const int32_t> ids) {
  uint64_t hash = parent ^ 0x9E3779B97F4A7C15U;
  for (const int32_t id : ids) {  // multiply and fold, a step an id
    hash = (hash ^ static_cast<uint32_t>(id)) * 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 32;
  }
  return hash;
}

std::optional<int32_t> PrefixCache::find(Serial parent, uint64_t hash, std::span<const int32_t> ids) const {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const Entry& entry = entries_.at(at->second);
    if (entry.parent == parent && std::equal(ids.begin(), ids.end(), entry.ids.begin(), entry.ids.end())) {
      return at->second;
    }
  }
  return std::nullopt;
}

std::vector<int32_t> PrefixCache::chain(std::span<const int32_t> ids, size_t most) const {
  std::vector<int32_t> blocks;
  Serial parent = 0;
  uint64_t hash = 0;
  for (size_t i = 0; i < std::min(most, ids.size() / block_size_); ++i) {
    const std::span<const int32_t> own = ids.subspan(i * block_size_, block_size_);
    hash = hash_of(hash, own);
    const std::optional<int32_t> block = find(parent, hash, own);
    if (!block) break;
    parent = entries_.at(*block).serial;
    blocks.push_back(*block);
  }
  return blocks;
}

void PrefixCache::touch(std::span<const int32_t> blocks) {
  for (size_t i = blocks.size(); i > 0; --i) {
    const Entry& entry = entries_.at(blocks[i - 1]);
    ages_.splice(ages_.end(), ages_, entry.age);
  }
}

void PrefixCache::hold(int32_t block) {
  if (eviction_ == Eviction::kLru && pool_->holders(block) == 1) --idle_;
  pool_->hold(block);
}

void PrefixCache::forget(int32_t block) {
  const auto found = entries_.find(block);
  const auto [begin, end] = by_hash_.equal_range(found->second.hash);
  by_hash_.erase(std::find_if(begin, end, [block](const auto& one) { return one.second == block; }));
  ages_.erase(found->second.age);
  entries_.erase(found);
}

}  // namespace assay::engines
