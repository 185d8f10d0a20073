// Page-locked memory for a short while: huge pages of the system, registered with CUDA. Some five times as fast to take
// and to give back as cudaMallocHost (128 MB: 15 ms for 90 ms on the machine of docs/performance.md).
#pragma once

#include <cstddef>

namespace assay::cuda {

// Owned, not movable, touched, content zero. Where memory cannot be registered it is cudaMallocHost's.
class PinnedPages {
 public:
  explicit PinnedPages(size_t bytes);  // 0: none. Throws CudaError.
  ~PinnedPages();
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  void* mapping_ = nullptr;  // null: of cudaMallocHost
  size_t mapped_bytes_ = 0;
};

}  // namespace assay::cuda
