#include <string>

#include "assay/sdk.hpp"
#include "backends/cpu/cpu_model.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/pool/thread_pool.h"
#include "backends/reference/border/table.h"

namespace {

const assay_host* host_of_plugin = nullptr;  // set once, by the first query

int32_t describe(assay_backend_info* info, assay_error*) {
  static const std::string device = [] {
    const auto kernels = assay::cpu::select_kernels("auto");
    return "cpu " + std::string((*kernels)->name) + ", " + std::to_string(assay::cpu::available_cores()) + " cores";
  }();
  info->usable = 10;
  info->device = assay::sdk::view(device);
  return ASSAY_OK;
}

int32_t open(const assay_model_source* source, void** model, assay_error* error) {
  return assay::backend::open_model(assay::cpu::open_cpu, host_of_plugin, source, model, error);
}

constexpr assay_backend_table kTable = assay::backend::table_of(describe, open);

constexpr assay_plugin kPlugin = assay::backend::plugin_of(
    {.name = "cpu",
     .description = "All models on the processor, AVX-512, AVX2 or plain, equal to the reference bit for bit",
     .options_schema = R"({"type":"object","properties":{"isa":{"enum":["auto","avx512","avx2","scalar"]},)"
                       R"("threads":{"type":"integer","minimum":0,"maximum":1024},)"
                       R"("parallel_from":{"type":"integer","minimum":0}},)"
                       R"("additionalProperties":false})"},
    kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host* host) {
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  host_of_plugin = host;
  return &kPlugin;
}
