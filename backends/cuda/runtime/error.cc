#include "backends/cuda/runtime/error.h"

#include <cstdio>

namespace assay::cuda {
namespace {

std::string memory_note(cudaError_t code) {
  size_t free = 0;
  size_t total = 0;
  if (code != cudaErrorMemoryAllocation || cudaMemGetInfo(&free, &total) != cudaSuccess) return "";
  char text[80];
  std::snprintf(text, sizeof(text), "; %.2f of %.2f GB are free", static_cast<double>(free) * 1e-9,
                static_cast<double>(total) * 1e-9);
  return text;
}

}  // namespace

CudaError::CudaError(const std::string& call, cudaError_t code)
    : std::runtime_error("CUDA device: " + call + ": " + cudaGetErrorString(code) + memory_note(code)), code_(code) {
  cudaGetLastError();  // an error that is not sticky is not reported a second time
}

Status to_status(const CudaError& error) {
  return error.code() == cudaErrorMemoryAllocation ? exhausted(error.what()) : infra(error.what());
}

}  // namespace assay::cuda
