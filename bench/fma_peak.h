// The fastest that the processor multiplies and adds: the yardstick of prefill.
#pragma once

namespace assay::bench {

// fp32 multiply-adds a second of `threads` threads that work on registers alone, with the widest vectors that this
// processor has. The best of some short runs; takes about 50 ms.
double measure_fma_rate(int threads);

}  // namespace assay::bench
