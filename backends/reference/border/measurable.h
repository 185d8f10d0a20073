// What a model can tell of the device it runs on, beside running on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "backends/reference/border/model.h"

namespace assay::backend {

struct DeviceFacts {
  double read_bandwidth = 0;  // bytes a second
  uint64_t memory_used = 0;   // bytes
  uint64_t memory_total = 0;  // bytes
};

// All launches of one kind of kernel; as assay_kernel_time.
struct KernelTime {
  std::string name;
  uint64_t launches = 0;
  double bytes = 0;
  double flops = 0;
  double seconds = 0;
};

// A Model that is one of these answers device_facts and profile of the backend table. For one thread, as Model.
class Measurable {
 public:
  virtual ~Measurable() = default;
  // Measures the read bandwidth anew. Fails as the device does.
  virtual Result<DeviceFacts> device_facts() = 0;
  // As Model::forward, with a clock around each kernel; in the order in which each kind came first.
  virtual Result<std::vector<KernelTime>> profile(Cache& cache, std::span<const assay_run> runs) = 0;
};

}  // namespace assay::backend
