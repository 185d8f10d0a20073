#include "backends/cuda/slices.h"

#include <algorithm>

namespace assay::cuda {

std::vector<Slice> cut_slices(std::span<const assay_run> runs, uint32_t most_tokens, uint32_t least_fast) {
  std::vector<Slice> slices;
  uint32_t room = 0;  // tokens that the last slice may still take
  for (const assay_run& run : runs) {
    const bool fast = least_fast > 0 && run.count >= least_fast;
    if (!slices.empty() && slices.back().fast != fast) room = 0;
    for (uint32_t begin = 0; begin < run.count;) {
      const uint32_t wanted = std::min(run.count - begin, most_tokens);
      if (room == 0 || (fast && room < wanted)) {
        slices.push_back({fast, {}});
        room = most_tokens;
      }
      const uint32_t count = std::min(wanted, room);
      slices.back().pieces.push_back({&run, begin, count});
      begin += count;
      room -= count;
    }
  }
  return slices;
}

}  // namespace assay::cuda
