#include "backends/cuda/runtime/pinned_pages.h"

#include <sys/mman.h>

#include <cstring>

#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

PinnedPages::PinnedPages(size_t bytes) {
  if (bytes == 0) return;
  const size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  mapped_bytes_ = rounded + kHugePage;  // so that a part of it begins at a huge page
  mapping_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw CudaError::host_memory(bytes);
  const auto address = reinterpret_cast<uintptr_t>(mapping_);
  data_ = static_cast<std::byte*>(mapping_) + (kHugePage - address % kHugePage) % kHugePage;
  ::madvise(data_, rounded, MADV_HUGEPAGE);  // a wish: without it the pages are small
  std::memset(data_, 0, rounded);            // here, by each thread its own, not one after the other in the driver
  if (cudaHostRegister(data_, rounded, cudaHostRegisterDefault) == cudaSuccess) return;
  cudaGetLastError();
  ::munmap(mapping_, mapped_bytes_);
  mapping_ = nullptr;
  void* data = nullptr;
  const cudaError_t code = cudaMallocHost(&data, bytes);
  if (code == cudaErrorMemoryAllocation) throw CudaError::host_memory(bytes);
  check(code, "cudaMallocHost");
  std::memset(data, 0, bytes);
  data_ = static_cast<std::byte*>(data);
}

PinnedPages::~PinnedPages() {
  if (data_ == nullptr) return;
  if (mapping_ == nullptr) {
    cudaFreeHost(data_);
    return;
  }
  cudaHostUnregister(data_);
  ::munmap(mapping_, mapped_bytes_);
}

}  // namespace assay::cuda
