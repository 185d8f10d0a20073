// Byte-pair encoding over a table of byte strings whose index is their merge rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/include/assay/status.h"

namespace assay::model {

// rank -> bytes and back. Immutable once filled: then safe from any thread. Moving keeps views valid, copying is
// refused.
class BytePairTable {
 public:
  // tokens: [rank]; not empty; the first 256 are the single bytes in order (the vocabulary reader sees to both).
  // kInvalid naming both ranks where two are equal.
  static Result<BytePairTable> make(std::vector<std::string> tokens);

  BytePairTable(BytePairTable&&) = default;
  BytePairTable(const BytePairTable&) = delete;
  BytePairTable& operator=(BytePairTable&&) = default;
  BytePairTable& operator=(const BytePairTable&) = delete;
  ~BytePairTable() = default;

  size_t size() const { return tokens_.size(); }
  std::string_view bytes(int32_t rank) const { return tokens_[static_cast<size_t>(rank)]; }
  std::optional<int32_t> rank(std::string_view bytes) const;

  // Appends the tokens of one piece (at most 2^32 - 2 bytes; any bytes) to ids, each as rank + first_id.
  // A piece that is in the table is one token. Else: of all adjacent pairs whose joined bytes are in the table, the one
  // with the lowest rank is merged (the leftmost of equals), until there is none. O(n log n).
  void encode(std::string_view piece, int32_t first_id, std::vector<int32_t>& ids) const;

 private:
  BytePairTable() = default;

  std::vector<std::string> tokens_;                        // [rank]
  std::unordered_map<std::string_view, int32_t> rank_of_;  // views into tokens_
  size_t longest_ = 0;                                     // bytes
};

}  // namespace assay::model
