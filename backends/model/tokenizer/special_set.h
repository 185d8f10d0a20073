// The special tokens of a vocabulary: ids 0 .. size - 1, recognised inside text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/include/assay/status.h"

namespace assay::model {

// Immutable: safe from any thread.
class SpecialSet {
 public:
  struct Match {
    size_t begin;  // byte offsets
    size_t end;
    int32_t id;
  };

  // names: the first of them (empty: <unk> <s> </s> <mask> <pad> <cls> <sep>), filled up with <SPECIAL_i> to `count`.
  // kInvalid when there are more names than `count`, one is empty or twice, or one of the seven is missing.
  // kUnsupported when one begins another: which of the two a text then holds is not defined by tiktoken.
  static Result<SpecialSet> make(std::vector<std::string> names, int64_t count);

  int32_t size() const { return static_cast<int32_t>(names_.size()); }
  const std::string& name(int32_t id) const { return names_[static_cast<size_t>(id)]; }
  int32_t id(std::string_view name) const;  // name: one of the seven

  // The leftmost special token that begins at or after `from`. As none begins another, there is at most one a place.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  explicit SpecialSet(std::vector<std::string> names);
  std::optional<Match> match_at(std::string_view text, size_t offset) const;

  std::vector<std::string> names_;     // [id]
  std::vector<int32_t> sorted_;        // ids by name
  std::array<Range, 256> by_first_{};  // [first byte]: range of sorted_
};

}  // namespace assay::model
