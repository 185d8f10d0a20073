#include "backends/model/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace assay::model {
namespace {

constexpr int32_t kNone = -1;

// One piece while it is merged: a linked list of tokens, each known by the offset of its first byte, and a heap of
// candidate merges.
class Merger {
 public:
  Merger(const BytePairTable& table, std::string_view piece) : table_(table), piece_(piece), nodes_(piece.size()) {
    const auto size = static_cast<uint32_t>(piece.size());
    std::vector<uint64_t> candidates;
    candidates.reserve(size);
    for (uint32_t i = 0; i < size; ++i) {
      nodes_[i] = {.previous = i - 1, .end = i + 1, .rank = static_cast<uint8_t>(piece[i]), .pair_rank = kNone};
    }
    for (uint32_t i = 0; i + 1 < size; ++i) {
      nodes_[i].pair_rank = pair_rank(i);
      if (nodes_[i].pair_rank != kNone) candidates.push_back(key(i));
    }
    heap_ = Heap(std::greater<>(), std::move(candidates));
  }

  void merge_all() {
    while (!heap_.empty()) {
      const uint64_t top = heap_.top();
      heap_.pop();
      const auto start = static_cast<uint32_t>(top);
      // A candidate is stale when its pair has changed since; a rank names one byte string, so equal ranks are the
      // pair.
      if (nodes_[start].pair_rank == static_cast<int32_t>(top >> 32)) merge(start);
    }
  }

  void append_to(std::vector<int32_t>& ids, int32_t first_id) const {
    for (uint32_t i = 0; i < nodes_.size(); i = nodes_[i].end) ids.push_back(nodes_[i].rank + first_id);
  }

 private:
  struct Node {
    uint32_t previous;  // offset of the token before; meaningless for offset 0
    uint32_t end;       // offset of the next token, or the piece's size
    int32_t rank;       // of this token
    int32_t pair_rank;  // of this token joined with the next, or kNone
  };
  using Heap = std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>>;

  // Orders candidates by rank, then from left to right.
  uint64_t key(uint32_t start) const { return static_cast<uint64_t>(nodes_[start].pair_rank) << 32 | start; }

  int32_t pair_rank(uint32_t start) const {
    const uint32_t middle = nodes_[start].end;
    if (middle == piece_.size()) return kNone;
    return table_.rank(piece_.substr(start, nodes_[middle].end - start)).value_or(kNone);
  }

  void renew_pair(uint32_t start) {
    nodes_[start].pair_rank = pair_rank(start);
    if (nodes_[start].pair_rank != kNone) heap_.push(key(start));
  }

  void merge(uint32_t left) {
    const uint32_t right = nodes_[left].end;
    nodes_[left].rank = nodes_[left].pair_rank;
    nodes_[left].end = nodes_[right].end;
    nodes_[right].pair_rank = kNone;
    if (nodes_[left].end < nodes_.size()) nodes_[nodes_[left].end].previous = left;
    renew_pair(left);
    if (left > 0) renew_pair(nodes_[left].previous);
  }

  const BytePairTable& table_;
  std::string_view piece_;
  std::vector<Node> nodes_;  // [byte offset]; only those where a token starts are alive
  Heap heap_;                // rank << 32 | start
};

}  // namespace

Result<BytePairTable> BytePairTable::make(std::vector<std::string> tokens) {
  BytePairTable table;
  table.tokens_ = std::move(tokens);
  table.rank_of_.reserve(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    const auto [other, is_new] = table.rank_of_.emplace(table.tokens_[i], static_cast<int32_t>(i));
    if (!is_new) {
      return invalid("rank " + std::to_string(i) + ": the same token_bytes as rank " + std::to_string(other->second));
    }
    table.longest_ = std::max(table.longest_, table.tokens_[i].size());
  }
  return table;
}

std::optional<int32_t> BytePairTable::rank(std::string_view bytes) const {
  if (bytes.size() > longest_) return std::nullopt;
  const auto found = rank_of_.find(bytes);
  if (found == rank_of_.end()) return std::nullopt;
  return found->second;
}

void BytePairTable::encode(std::string_view piece, int32_t first_id, std::vector<int32_t>& ids) const {
  if (const std::optional<int32_t> whole = rank(piece)) {
    ids.push_back(*whole + first_id);
    return;
  }
  Merger merger(*this, piece);
  merger.merge_all();
  merger.append_to(ids, first_id);
}

}  // namespace assay::model
