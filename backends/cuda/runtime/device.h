// Which device is used, and why none can be. Safe on machines without a driver.
#pragma once

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

// Every usable device's best: the first of the lowest index. kInfra with the reason when there is none: no driver, a
// driver too old, no device, or none of compute capability 9.0 or later.
Result<Device> find_device();

// Makes `device` the calling thread's. Throws CudaError.
void use_device(const Device& device);

}  // namespace assay::cuda
