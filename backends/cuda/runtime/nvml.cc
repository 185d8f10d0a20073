#include "backends/cuda/runtime/nvml.h"

#include <dlfcn.h>

#include <algorithm>

namespace assay::cuda {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kInsufficientSize = 7;  // NVML_ERROR_INSUFFICIENT_SIZE

template <class Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<const NvmlTable*> open_library() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return not_found(std::string(kLibrary) + " is not there");
  static NvmlTable table;
  const bool all = bind(library, "nvmlInit_v2", table.init) && bind(library, "nvmlShutdown", table.shutdown) &&
                   bind(library, "nvmlErrorString", table.error_string) &&
                   bind(library, "nvmlDeviceGetHandleByPciBusId_v2", table.device_by_bus) &&
                   bind(library, "nvmlDeviceGetMemoryInfo", table.memory) &&
                   bind(library, "nvmlDeviceGetComputeRunningProcesses_v3", table.processes);
  if (!all) return not_found(std::string(kLibrary) + " is too old");
  return &table;
}

// As many as there are; processes may start between the two calls, so there is room for some more.
int list_processes(const NvmlTable& table, void* device, std::vector<NvmlProcess>& processes) {
  unsigned count = 0;
  int code = table.processes(device, &count, nullptr);
  if (code != 0 && code != kInsufficientSize) return code;
  count += 16;
  processes.resize(count);
  code = table.processes(device, &count, processes.data());
  processes.resize(code == 0 ? count : 0);
  return code;
}

}  // namespace

Result<const NvmlTable*> nvml() {
  static const Result<const NvmlTable*> opened = open_library();
  return opened;
}

Result<DeviceHolders> find_holders(const NvmlTable& table, const std::string& pci_bus_id) {
  DeviceHolders holders;
  int code = table.init();
  if (code != 0) return infra(std::string("NVML: ") + table.error_string(code));
  void* device = nullptr;
  code = table.device_by_bus(pci_bus_id.c_str(), &device);
  if (code == 0) code = table.memory(device, &holders.memory);
  if (code == 0) code = list_processes(table, device, holders.processes);
  const std::string words = code == 0 ? "" : table.error_string(code);
  table.shutdown();
  if (code != 0) return infra("NVML: " + words);
  std::ranges::stable_sort(holders.processes, std::greater<>(), &NvmlProcess::bytes);
  return holders;
}

}  // namespace assay::cuda
