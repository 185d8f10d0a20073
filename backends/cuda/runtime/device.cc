#include "backends/cuda/runtime/device.h"

#include <cuda_runtime_api.h>

#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status no_device(cudaError_t code) {
  cudaGetLastError();
  CudaVersions versions;
  cudaDriverGetVersion(&versions.driver);
  cudaRuntimeGetVersion(&versions.needed);
  return infra(no_device_text(code, versions));
}

}  // namespace

// CUDA's own words say nothing of versions.
std::string no_device_text(cudaError_t code, const CudaVersions& versions) {
  if (code != cudaErrorInsufficientDriver) return std::string("no CUDA device: ") + cudaGetErrorString(code);
  if (versions.driver == 0) return "no CUDA device: no NVIDIA driver is installed";
  return "no CUDA device: the driver supports CUDA " + version_text(versions.driver) + ", this build needs " +
         version_text(versions.needed) + "; update the driver";
}

Result<Device> find_device() {
  int count = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) return no_device(code);
  std::string seen;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (const cudaError_t code = cudaGetDeviceProperties(&properties, index); code != cudaSuccess) {
      return no_device(code);
    }
    if (properties.major >= kLeastMajor) {
      return Device{index, properties.name, properties.multiProcessorCount, properties.totalGlobalMem};
    }
    seen += (seen.empty() ? "" : ", ") + std::string(properties.name) + " with " + std::to_string(properties.major) +
            "." + std::to_string(properties.minor);
  }
  return infra("no CUDA device of compute capability " + std::to_string(kLeastMajor) +
               ".0 or later: " + (seen.empty() ? "the driver shows none" : seen));
}

std::string usable_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  std::string indices;
  for (int index = 0; index < count; ++index) {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess) continue;
    if (major >= kLeastMajor) indices += (indices.empty() ? "" : ",") + std::to_string(index);
  }
  return indices;
}

void use_device(const Device& device) { check(cudaSetDevice(device.index), "cudaSetDevice"); }

}  // namespace assay::cuda
