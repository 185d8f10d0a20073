#include "backends/cuda/runtime/device.h"

#include <cuda_runtime_api.h>

#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// cudaGetDeviceCount's words say nothing of versions.
Status no_device(cudaError_t code) {
  cudaGetLastError();
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (code == cudaErrorInsufficientDriver && driver == 0) return infra("no CUDA device: no NVIDIA driver is installed");
  if (code == cudaErrorInsufficientDriver) {
    return infra("no CUDA device: the driver supports CUDA " + version_text(driver) + ", this build needs " +
                 version_text(runtime) + "; update the driver");
  }
  return infra(std::string("no CUDA device: ") + cudaGetErrorString(code));
}

}  // namespace

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

void use_device(const Device& device) { check(cudaSetDevice(device.index), "cudaSetDevice"); }

}  // namespace assay::cuda
