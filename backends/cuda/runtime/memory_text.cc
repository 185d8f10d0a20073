#include "backends/cuda/runtime/memory_text.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

namespace assay::cuda {
namespace {

constexpr size_t kMostNamed = 5;
constexpr unsigned long long kUnknown = ~0ULL;

std::string process_text(const NvmlProcess& process, const MemoryFacts& facts) {
  std::string text = "this process";
  if (process.pid != facts.own_pid) {
    const std::string name = facts.name_of ? facts.name_of(process.pid) : "";
    text = "process " + std::to_string(process.pid) + (name.empty() ? "" : " (" + name + ")");
  }
  return text + (process.bytes == kUnknown ? " an unknown part" : " " + gigabytes(process.bytes));
}

std::string holders_text(const MemoryFacts& facts) {
  if (!facts.holders) return "who holds the rest is not known (" + facts.holders.status().message() + ")";
  const std::vector<NvmlProcess>& processes = facts.holders->processes;
  if (processes.empty()) return "NVML names no process that holds the rest";
  std::string text = "held by ";
  for (size_t i = 0; i < std::min(processes.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + process_text(processes[i], facts);
  }
  if (processes.size() > kMostNamed) text += " and " + std::to_string(processes.size() - kMostNamed) + " more";
  return text;
}

std::string command_of(unsigned pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

Result<DeviceHolders> holders_of_this_device() {
  const Result<const NvmlTable*> table = nvml();
  if (!table) return table.status();
  int index = 0;
  std::array<char, 32> bus{};
  if (cudaGetDevice(&index) != cudaSuccess ||
      cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index) != cudaSuccess) {
    cudaGetLastError();
    return infra("the device gives no bus id");
  }
  return find_holders(**table, bus.data());
}

}  // namespace

std::string gigabytes(uint64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GB", static_cast<double>(bytes) * 1e-9);
  return text.data();
}

std::string memory_text(const MemoryFacts& facts) {
  uint64_t free = facts.free;
  uint64_t total = facts.total;
  if (total == 0 && facts.holders) {
    free = facts.holders->memory.free;
    total = facts.holders->memory.total;
  }
  const std::string amount =
      total == 0 ? "how much is free is not known" : gigabytes(free) + " of " + gigabytes(total) + " are free";
  return amount + "; " + holders_text(facts);
}

std::string memory_text() {
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    cudaGetLastError();
    free = total = 0;
  }
  return memory_text({.free = free,
                      .total = total,
                      .holders = holders_of_this_device(),
                      .own_pid = static_cast<unsigned>(::getpid()),
                      .name_of = command_of});
}

}  // namespace assay::cuda
