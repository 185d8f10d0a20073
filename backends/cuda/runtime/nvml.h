// NVIDIA's management library, opened at run time: it tells which processes hold memory of a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::cuda {

// nvmlProcessInfo_t of NVML's functions ..._v3 (NVML API reference, 2.11).
struct NvmlProcess {
  unsigned int pid = 0;
  unsigned long long bytes = 0;  // all bits set: not known
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;
};

// nvmlMemory_t, in bytes.
struct NvmlMemory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

// The functions that are used, under their NVML names without "nvml"; tests fill it with their own. All return an
// nvmlReturn_t, 0 for success.
struct NvmlTable {
  int (*init)() = nullptr;                                                  // Init_v2
  int (*shutdown)() = nullptr;                                              // Shutdown
  const char* (*error_string)(int code) = nullptr;                          // ErrorString
  int (*device_by_bus)(const char* pci_bus_id, void** device) = nullptr;    // DeviceGetHandleByPciBusId_v2
  int (*memory)(void* device, NvmlMemory* memory) = nullptr;                // DeviceGetMemoryInfo
  int (*processes)(void* device, unsigned* count, NvmlProcess*) = nullptr;  // DeviceGetComputeRunningProcesses_v3
};

// libnvidia-ml.so.1, opened once and never closed. kNotFound with the reason when it is absent or too old. Thread-safe.
Result<const NvmlTable*> nvml();

struct DeviceHolders {
  NvmlMemory memory;
  std::vector<NvmlProcess> processes;  // most bytes first
};

// kInfra with NVML's words when it refuses. Thread-safe as far as the table is.
Result<DeviceHolders> find_holders(const NvmlTable& table, const std::string& pci_bus_id);

}  // namespace assay::cuda
