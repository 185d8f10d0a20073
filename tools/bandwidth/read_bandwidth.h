// Measures how fast this machine reads memory: the yardstick of every decode figure.
#pragma once

#include <cstddef>

namespace assay::tools {

struct ReadBandwidth {
  double best_gb_per_s = 0;    // 1e9 bytes a second, the fastest pass
  double median_gb_per_s = 0;  // the median pass
};

// Reads `bytes` of freshly written memory `passes` times with `threads` threads, each its own contiguous part, and sums
// it (the sum is used, so no read can be left out). bytes: > the last-level cache, else the figure is the cache's.
// Failure to allocate throws std::bad_alloc.
ReadBandwidth measure_read_bandwidth(size_t bytes, int threads, int passes);

}  // namespace assay::tools
