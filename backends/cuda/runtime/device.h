// Which device is used, and why none can be. Safe on machines without a driver.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <string>

#include "assay/status.h"

namespace assay::cuda {

struct Device {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  int multiprocessors = 0;
  size_t memory = 0;  // bytes
};

// Compute capability that the machine code is built for; later ones run its PTX.
inline constexpr int kLeastMajor = 9;

// The usable device of the lowest index. kInfra with the reason when there is none: no driver, a
// driver too old, no device, or none of compute capability 9.0 or later.
Result<Device> find_device();

// Indices of all usable devices that this process sees: "0,2"; empty: none.
std::string usable_devices();

// Versions of CUDA as it tells them: 13000 is 13.0.
struct CudaVersions {
  int driver = 0;  // the latest that the driver supports; 0: there is no driver
  int needed = 0;  // by this build
};

// One line: why no device can be used after CUDA answered `code`.
std::string no_device_text(cudaError_t code, const CudaVersions& versions);

// Makes `device` the calling thread's. Throws CudaError.
void use_device(const Device& device);

}  // namespace assay::cuda
