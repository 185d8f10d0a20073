#include <string>

#include "assay/sdk.hpp"
#include "backends/cuda/cuda_model.h"
#include "backends/cuda/model_options.h"
#include "backends/cuda/runtime/device.h"
#include "backends/reference/border/table.h"

namespace {

const assay_host* host_of_plugin = nullptr;  // set once, by the first query

int32_t describe(assay_backend_info* info, assay_error*) {
  constexpr int32_t kPreference = 20;
  static const assay::Result<assay::cuda::Device> found = assay::cuda::find_device();
  static const std::string words = found.ok() ? "cuda " + found->name : found.status().message();
  info->usable = found.ok() ? kPreference : 0;
  info->device = assay::sdk::view(words);
  if (ASSAY_KNOWS(info, device_indices)) {
    static const std::string indices = assay::cuda::usable_devices();
    info->device_variable = assay::sdk::view("CUDA_VISIBLE_DEVICES");
    info->device_indices = assay::sdk::view(indices);
  }
  return ASSAY_OK;
}

int32_t open(const assay_model_source* source, void** model, assay_error* error) {
  return assay::backend::open_model(assay::cuda::open_cuda, host_of_plugin, source, model, error);
}

constexpr assay_backend_table kTable = assay::backend::table_of(describe, open);

constexpr assay_plugin kPlugin = assay::backend::plugin_of(
    {.name = "cuda",
     .description =
         "All models on an NVIDIA GPU of compute capability 9.0 or later; fp32 equal to the reference bit for bit",
     .options_schema = assay::cuda::kModelOptionsSchema},
    kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host* host) {
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  host_of_plugin = host;
  return &kPlugin;
}
