// Test backend: says of itself what CMake wrote into fake_backend_config.h and opens models that cannot compute.
#include <cstdlib>
#include <string>

#include "assay/sdk.hpp"
#include "fake_backend_config.h"

namespace {

int32_t describe(assay_backend_info* info, assay_error*) {
  if (kCrashes) std::abort();
  info->usable = kPreference;
  info->device = assay::sdk::view(kDevice);
  if (ASSAY_KNOWS(info, device_indices)) {
    info->device_variable = assay::sdk::view(kDeviceVariable);
    info->device_indices = assay::sdk::view(kDeviceIndices);
  }
  return ASSAY_OK;
}

int32_t open(const assay_model_source*, void** model, assay_error* error) {
  if (kPreference == 0) return assay::sdk::report(assay::infra("fake backend: no device"), error);
  static int handle = 0;
  *model = &handle;
  return ASSAY_OK;
}

int32_t model_info(void*, assay_model_info* info, assay_error*) {
  info->weight_bytes = 1234;
  info->device = assay::sdk::view(kDevice);
  return ASSAY_OK;
}

int32_t make_cache(void*, const assay_cache_spec*, void**, assay_error* error) {
  return assay::sdk::report(assay::unsupported("fake backend: no cache"), error);
}
int32_t forward(void*, void*, const assay_forward*, uint64_t*, assay_error* error) {
  return assay::sdk::report(assay::unsupported("fake backend: no arithmetic"), error);
}
int32_t wait(void*, uint64_t, assay_error*) { return ASSAY_OK; }
void release(void*) {}
void close(void*) {}

const assay_backend_table kTable = {sizeof(assay_backend_table),
                                    0,
                                    describe,
                                    open,
                                    model_info,
                                    make_cache,
                                    forward,
                                    wait,
                                    release,
                                    close,
                                    nullptr,
                                    nullptr};

const assay_plugin kPlugin = {.magic = ASSAY_PLUGIN_MAGIC,
                              .size = sizeof(assay_plugin),
                              .abi_major = ASSAY_ABI_MAJOR,
                              .abi_minor = ASSAY_ABI_MINOR,
                              .kind = ASSAY_BACKEND,
                              .reserved = 0,
                              .capabilities = 0,
                              .name = kName,
                              .version = "1",
                              .description = "test backend",
                              .options_schema = "{}",
                              .table = &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t, uint32_t, const assay_host*) { return &kPlugin; }
