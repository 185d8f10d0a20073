// What a message says about the memory of a device: how much is free, and who holds the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "assay/status.h"
#include "backends/cuda/runtime/nvml.h"

namespace assay::cuda {

// "12.34 GB": 1e9 bytes.
std::string gigabytes(uint64_t bytes);

// What the text is made of.
struct MemoryFacts {
  uint64_t free = 0;  // bytes, as CUDA tells; total 0: it does not
  uint64_t total = 0;
  Result<DeviceHolders> holders = not_found("not asked");
  unsigned own_pid = 0;
  std::function<std::string(unsigned pid)> name_of;  // "" when unknown
};

// "12.34 GB of 143.77 GB are free; held by process 123 (python3) 100.00 GB, this process 31.43 GB", or why who holds it
// is not known. At most five processes are named. No line breaks.
std::string memory_text(const MemoryFacts& facts);

// Of the calling thread's device, now. Never fails: says what is not known.
std::string memory_text();

}  // namespace assay::cuda
