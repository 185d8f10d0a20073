// How fast the device reads its memory: the yardstick of every decode figure.
#pragma once

#include <cstddef>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/stream.h"

namespace assay::cuda {

// Bytes a second of reading `bytes` bytes from `data` once, the fastest of four passes, each block of threads with
// 64 KB in flight. Small memory is measured as a cache: give it more than that holds (H200: 50 MB). Throws CudaError.
double measure_read_bandwidth(const void* data, size_t bytes, const Stream& stream);

}  // namespace assay::cuda
