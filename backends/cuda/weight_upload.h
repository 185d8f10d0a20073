// Brings rows of a checkpoint's weights to the device: several threads read the files front to back, each into two
// pinned slots in turn; a slot is copied and packed on the thread's stream while the other one is read into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/status.h"
#include "backends/cuda/kernels/types.h"
#include "backends/cuda/runtime/device.h"
#include "backends/model/weights/weight_map.h"

namespace assay::cuda {

// What happens to an fp32 vector on the host.
enum class Finish : uint8_t { kNone, kRound, kRoundAndAddOne, kAddOne };

// The rows [begin, end) of one weight.
struct UploadJob {
  const model::WeightRef* ref = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  model::Dtype dtype = model::Dtype::kFloat32;  // that it is read as
  std::byte* to = nullptr;                      // of the whole weight, on the device
  Matrix tiles = {};                            // where `tiled`: the weight, else not looked at
  Finish finish = Finish::kNone;                // fp32 only

  size_t bytes() const { return static_cast<size_t>((end - begin) * ref->cols) * model::dtype_size(dtype); }
};

// Rows that each job of a weight should take: equal parts of about 4 MB, or one row. Enough for a copy at the link's
// speed, and little enough for the slots of all threads to stay in the processor's cache.
int64_t rows_a_job(int64_t rows, int64_t row_bytes);

// Where weights are tiled, the region is zero before. No two jobs share rows of a weight; their order does not matter.
// All jobs are done, and the CRC of every chunk that they met is right, when it returns ok. Pinned memory: two jobs a
// thread, and as much on the device. Throws CudaError.
Status upload_all(const model::Checkpoint& checkpoint, std::vector<UploadJob> jobs, const Device& device, int threads);

}  // namespace assay::cuda
