#include "backends/cuda/runtime/error.h"

#include <cstdint>
#include <cstdio>

#include "backends/cuda/runtime/buffer.h"

namespace assay::cuda {
namespace {

std::string gigabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

// "12.34 GB of 143.77 GB are free", or nothing when the device does not tell.
std::string free_memory() {
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return "";
  return gigabytes(free) + " of " + gigabytes(total) + " are free";
}

}  // namespace

CudaError::CudaError(const std::string& call, cudaError_t code)
    : std::runtime_error("CUDA device: " + call + ": " + cudaGetErrorString(code) +
                         (code == cudaErrorMemoryAllocation ? "; " + free_memory() : "")),
      code_(code) {
  cudaGetLastError();  // an error that is not sticky is not reported a second time
}

Status to_status(const CudaError& error) {
  return error.code() == cudaErrorMemoryAllocation ? exhausted(error.what()) : infra(error.what());
}

Result<DeviceBuffer<std::byte>> take_memory(uint64_t bytes, const std::string& what) {
  void* data = nullptr;
  if (bytes == 0) return DeviceBuffer<std::byte>();
  const cudaError_t code = cudaMalloc(&data, bytes);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return exhausted(what + ": " + gigabytes(bytes) + " of device memory needed, " + free_memory() +
                     "; end what else uses the device, or use one with more memory");
  }
  check(code, "cudaMalloc");
  return DeviceBuffer<std::byte>::adopt(static_cast<std::byte*>(data), bytes);
}

}  // namespace assay::cuda
