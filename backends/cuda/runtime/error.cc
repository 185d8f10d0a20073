#include "backends/cuda/runtime/error.h"

#include <cstdint>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/memory_text.h"

namespace assay::cuda {
namespace {

// After these every call of the process fails, whatever it asks (CUDA Runtime API, "Error handling").
bool ends_the_process(cudaError_t code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

std::string addition(cudaError_t code) {
  if (code == cudaErrorMemoryAllocation) return "; " + memory_text();
  if (!ends_the_process(code)) return "";
  return "; this process cannot use the device any more: run again, and look into the driver's log (dmesg, Xid) if it "
         "comes back";
}

}  // namespace

CudaError::CudaError(const std::string& call, cudaError_t code)
    : CudaError(code, "CUDA device: " + call + ": " + cudaGetErrorString(code) + addition(code)) {
  cudaGetLastError();  // an error that is not sticky is not reported a second time
}

CudaError CudaError::host_memory(size_t bytes) {
  cudaGetLastError();
  return {cudaErrorMemoryAllocation, "page-locked host memory: " + gigabytes(bytes) +
                                         " cannot be had; free memory of the machine or raise its limit"};
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
    return exhausted(what + ": " + gigabytes(bytes) + " of device memory needed, " + memory_text() +
                     "; end what else uses the device, or use one with more memory");
  }
  check(code, "cudaMalloc");
  return DeviceBuffer<std::byte>::adopt(static_cast<std::byte*>(data), bytes);
}

}  // namespace assay::cuda
