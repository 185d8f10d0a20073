// How the runs of a forward pass are cut into slices: passes through the layers of a limited number of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "assay/plugin_abi.h"

namespace assay::cuda {

// Neighbouring tokens of one run.
struct Piece {
  const assay_run* run = nullptr;
  uint32_t begin = 0;  // within the run
  uint32_t count = 0;  // 1 or more
};

struct Slice {
  bool fast = false;  // may take the vendor's kernels
  std::vector<Piece> pieces = {};
};

// In the order of `runs`, at most `most_tokens` (1 or more) a slice. With `least_fast` 0, every slice but the last is
// full. Otherwise slices of runs of least_fast tokens or more are `fast` and hold no others, and such a run is cut at
// multiples of most_tokens from its own beginning: which kernels compute a token, and with which tokens of its run,
// does not depend on other runs.
std::vector<Slice> cut_slices(std::span<const assay_run> runs, uint32_t most_tokens, uint32_t least_fast);

}  // namespace assay::cuda
