// How a fault of the device travels: CudaError inside backends/cuda, a Status outside.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "assay/status.h"

namespace assay::cuda {

// A CUDA call failed. what(): the call, CUDA's words and, for a lack of memory, what is free.
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& call, cudaError_t code);
  cudaError_t code() const { return code_; }

 private:
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
