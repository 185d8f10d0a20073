// An engine whose submit throws across the border.
#include "assay/plugin_abi.h"

namespace {

int handle_of_all = 0;

int32_t open(const assay_engine_config* config, void** engine, assay_error* error) {
  if (config->options.size != 2) {
    error->code = ASSAY_INVALID;
    error->message[0] = 'n', error->message[1] = 'o', error->message[2] = '\0';
    return ASSAY_INVALID;
  }
  *engine = &handle_of_all;
  return ASSAY_OK;
}
int32_t submit(void*, const assay_request*, assay_error*) { throw 3; }
int32_t cancel(void*, uint64_t, assay_error* error) {
  error->code = ASSAY_NOT_FOUND;
  error->message[0] = 'n', error->message[1] = 'o', error->message[2] = '\0';
  return ASSAY_NOT_FOUND;
}
int32_t step(void*, const assay_event** events, size_t* count, size_t* pending, assay_error*) {
  *events = nullptr;
  *count = *pending = 0;
  return ASSAY_OK;
}
int32_t reset(void*, assay_error*) { return ASSAY_OK; }
void close(void*) {}

const assay_engine_table kTable = {
    sizeof(assay_engine_table), 0, open, submit, cancel, step, reset, close, nullptr, nullptr};
const assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                              sizeof(assay_plugin),
                              ASSAY_ABI_MAJOR,
                              ASSAY_ABI_MINOR,
                              ASSAY_ENGINE,
                              0,
                              ASSAY_CAP_TEXT,
                              "bad_throws",
                              "1.0.0",
                              "made to be found out",
                              R"({"type": "object"})",
                              &kTable};

}  // namespace

extern "C" __attribute__((visibility("default"))) const assay_plugin* assay_plugin_query(uint32_t major, uint32_t,
                                                                                         const assay_host*) {
  return major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
