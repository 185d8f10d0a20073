// Messages about a device's memory, with an NVML of our own; these need no device.
#include "backends/cuda/runtime/memory_text.h"

#include <gmock/gmock.h>

#include <cstring>

#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr unsigned long long kGb = 1000000000;

// What the NVML of this test answers.
struct FakeNvml {
  std::vector<NvmlProcess> processes;
  int fails_at_init = 0;
  int fails_at_processes = 0;
  int open = 0;  // init without shutdown
  std::string asked_bus;
};
FakeNvml* fake = nullptr;  // of the running test

NvmlTable fake_table() {
  NvmlTable table;
  table.init = [] {
    if (fake->fails_at_init == 0) ++fake->open;
    return fake->fails_at_init;
  };
  table.shutdown = [] { return --fake->open; };
  table.error_string = [](int code) { return code == 9 ? "Driver Not Loaded" : "Unknown Error"; };
  table.device_by_bus = [](const char* bus, void** device) {
    fake->asked_bus = bus;
    *device = fake;
    return 0;
  };
  table.memory = [](void*, NvmlMemory* memory) {
    *memory = {144 * kGb, 2 * kGb, 142 * kGb};
    return 0;
  };
  table.processes = [](void* device, unsigned* count, NvmlProcess* out) {
    const auto& all = static_cast<FakeNvml*>(device)->processes;
    if (fake->fails_at_processes != 0) return fake->fails_at_processes;
    const bool fits = *count >= all.size();
    *count = static_cast<unsigned>(all.size());
    if (!fits) return 7;
    for (size_t i = 0; i < all.size(); ++i) out[i] = all[i];
    return 0;
  };
  return table;
}

class MemoryText : public ::testing::Test {
 protected:
  void SetUp() override { fake = &nvml_; }
  void TearDown() override {
    EXPECT_EQ(nvml_.open, 0);
    fake = nullptr;
  }

  std::string text(uint64_t free, uint64_t total) const {
    const auto name_of = [](unsigned pid) { return pid == 77 ? std::string("python3") : std::string(); };
    return memory_text({.free = free,
                        .total = total,
                        .holders = find_holders(fake_table(), "0000:1B:00.0"),
                        .own_pid = 42,
                        .name_of = name_of});
  }

  FakeNvml nvml_;
};

TEST_F(MemoryText, NamesWhoHoldsTheMemoryLargestFirst) {
  nvml_.processes = {{42, 20 * kGb}, {77, 100 * kGb}, {78, kGb / 2}};
  EXPECT_EQ(text(22 * kGb, 144 * kGb),
            "22.00 GB of 144.00 GB are free; held by process 77 (python3) 100.00 GB, this process 20.00 GB, "
            "process 78 0.50 GB");
  EXPECT_EQ(nvml_.asked_bus, "0000:1B:00.0");
}

TEST_F(MemoryText, ManyProcessesAreCounted) {
  for (unsigned pid = 100; pid < 140; ++pid) nvml_.processes.push_back({pid, kGb});
  EXPECT_THAT(text(1, 2), AllOf(HasSubstr("process 104 1.00 GB and 35 more"), Not(HasSubstr("process 105"))));
}

TEST_F(MemoryText, WhatIsNotKnownIsSaid) {
  nvml_.processes = {{77, ~0ULL}};
  EXPECT_THAT(text(1, 2), HasSubstr("process 77 (python3) an unknown part"));
  nvml_.processes = {};
  EXPECT_THAT(text(1, 2), HasSubstr("NVML names no process"));
  EXPECT_EQ(text(0, 0), "2.00 GB of 144.00 GB are free; NVML names no process that holds the rest");
  nvml_.fails_at_init = 9;
  EXPECT_THAT(text(1, 2), HasSubstr("who holds the rest is not known (NVML: Driver Not Loaded)"));
  EXPECT_THAT(text(0, 0), HasSubstr("how much is free is not known"));
  nvml_.fails_at_init = 0;
  nvml_.fails_at_processes = 3;
  EXPECT_THAT(text(1, 2), HasSubstr("(NVML: Unknown Error)"));
}

// With a driver or without: one line, never a crash.
TEST_F(MemoryText, OfThisMachineIsOneLine) {
  const std::string text = memory_text();
  EXPECT_FALSE(text.empty());
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  if (nvml().ok()) return;
  EXPECT_THAT(text, HasSubstr("who holds the rest is not known (libnvidia-ml.so.1 is"));
}

TEST(NoDevice, SaysWhatTheDriverSupportsAndWhatIsNeeded) {
  EXPECT_EQ(no_device_text(cudaErrorInsufficientDriver, {.driver = 12040, .needed = 13000}),
            "no CUDA device: the driver supports CUDA 12.4, this build needs 13.0; update the driver");
  EXPECT_EQ(no_device_text(cudaErrorInsufficientDriver, {.driver = 0, .needed = 13000}),
            "no CUDA device: no NVIDIA driver is installed");
  EXPECT_EQ(no_device_text(cudaErrorNoDevice, {.driver = 13000, .needed = 13000}),
            "no CUDA device: no CUDA-capable device is detected");
}

TEST(CudaError, LackOfMemoryIsExhaustedAndAFaultIsInfra) {
  const Status memory = on_device([]() -> Status { throw CudaError("cudaMalloc", cudaErrorMemoryAllocation); });
  EXPECT_EQ(memory.code(), StatusCode::kExhausted);
  EXPECT_THAT(memory.message(), HasSubstr("cudaMalloc: out of memory; "));
  const Status fault = on_device([]() -> Status { throw CudaError("a kernel", cudaErrorIllegalAddress); });
  EXPECT_EQ(fault.code(), StatusCode::kInfra);
  EXPECT_THAT(fault.message(), HasSubstr("illegal memory access"));
  EXPECT_THAT(fault.message(), HasSubstr("this process cannot use the device any more"));
  const Status refused = on_device([]() -> Status { throw CudaError("cudaMemcpy", cudaErrorInvalidValue); });
  EXPECT_EQ(refused.message(), "CUDA device: cudaMemcpy: invalid argument");
}

TEST(CudaError, LackOfHostMemoryIsNotTakenForTheDevices) {
  const Status host = on_device([]() -> Status { throw CudaError::host_memory(size_t{3} << 30); });
  EXPECT_EQ(host.code(), StatusCode::kExhausted);
  EXPECT_EQ(host.message(),
            "page-locked host memory: 3.22 GB cannot be had; free memory of the machine or raise its limit");
}

}  // namespace
}  // namespace assay::cuda
