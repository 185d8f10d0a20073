// How a fault of the device travels: CudaError inside backends/cuda, a Status outside.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "assay/status.h"

namespace assay::cuda {

// A CUDA call failed. what(): the call, CUDA's words and, for a lack of memory, how much is free and who holds it; for
// a fault that ends the process's use of the device, that it does.
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& call, cudaError_t code);
  static CudaError host_memory(size_t bytes);  // that many of page-locked memory of the host cannot be had
  cudaError_t code() const { return code_; }

 private:
  CudaError(cudaError_t code, const std::string& message) : std::runtime_error(message), code_(code) {}

  cudaError_t code_;
};

// Throws CudaError unless `code` is success. `call`: what was tried, e.g. "cudaMemcpyAsync".
inline void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw CudaError(call, code);
}

// After a launch: throws when the launch itself was refused. Faults while it runs come at the next synchronisation.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

// kExhausted for a lack of memory, kInfra for everything else that a device does.
Status to_status(const CudaError& error);

// The one place that catches CudaError: returns body()'s Status or Result, or the fault's Status.
template <class Body>
auto on_device(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const CudaError& error) {
    return to_status(error);
  }
}

}  // namespace assay::cuda
