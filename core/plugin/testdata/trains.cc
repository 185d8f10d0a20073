// Engines that claim training: trains has the function, trains_null has null for it, the table of trains_short is one
// of ABI 1.3, which ends before it.
#include <cstddef>
#include <string_view>

#include "assay/sdk.hpp"

namespace {

constexpr std::string_view kName = NAME;

int32_t open(const assay_engine_config*, void**, assay_error*) { return ASSAY_OK; }
int32_t submit(void*, const assay_request*, assay_error*) { return ASSAY_OK; }
int32_t cancel(void*, uint64_t, assay_error*) { return ASSAY_OK; }
int32_t step(void*, const assay_event**, size_t*, size_t*, assay_error*) { return ASSAY_OK; }
int32_t reset(void*, assay_error*) { return ASSAY_OK; }
void close(void*) {}
int32_t train(void*, const assay_training*, assay_training_result*, assay_error*) { return ASSAY_OK; }

const assay_engine_table kTable = {
    .size = kName == "trains_short" ? offsetof(assay_engine_table, info) + sizeof(void*) : sizeof(assay_engine_table),
    .reserved = 0,
    .open = open,
    .submit = submit,
    .cancel = cancel,
    .step = step,
    .reset = reset,
    .close = close,
    .info = nullptr,
    .train = kName == "trains_null" ? nullptr : train};

const assay_plugin kPlugin = {.magic = ASSAY_PLUGIN_MAGIC,
                              .size = sizeof(assay_plugin),
                              .abi_major = ASSAY_ABI_MAJOR,
                              .abi_minor = ASSAY_ABI_MINOR,
                              .kind = ASSAY_ENGINE,
                              .reserved = 0,
                              .capabilities = ASSAY_CAP_TRAIN,
                              .name = NAME,
                              .version = "1",
                              .description = "claims training",
                              .options_schema = "{}",
                              .table = &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t, uint32_t, const assay_host*) { return &kPlugin; }
