// A request between its arrival and its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plugins/engines/common/sequence.h"

namespace assay::engines {

struct Active {
  Active(Sequence of, uint64_t number) : sequence(std::move(of)), order(number) {}

  // Positions that can go through the model with the tokens known now.
  size_t goal() const { return std::min(sequence.tokens().size(), sequence.needed()); }
  size_t left() const { return goal() - computed; }
  // Its next run gives one token after another.
  bool decodes() const { return computed > 0 && left() == 1; }

  Sequence sequence;
  uint64_t order;               // of arrival: the larger, the younger
  std::vector<int32_t> blocks;  // its block table; empty while it waits
  size_t published = 0;         // leading blocks that the prefix cache knows
  size_t computed = 0;          // positions whose keys and values are in its blocks
  uint64_t step = 0;            // number of its last forward

  // For reports.
  uint64_t arrived_ns = 0;
  uint64_t first_token_ns = 0;  // 0: none yet
};

}  // namespace assay::engines
