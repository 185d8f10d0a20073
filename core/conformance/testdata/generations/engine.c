/* An engine as somebody wrote it for the ABI that it is built with: answers a request with its prompt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assay/plugin_abi.h"
#include "table.h"

struct engine {
  int waiting;
  int answered;
  uint64_t id;
  char text[256];
  size_t size;
  assay_result result;
  assay_event event;
};

static int32_t fail(assay_error* error, int32_t code, const char* message) {
  error->code = code;
  snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

static int32_t open_engine(const assay_engine_config* config, void** handle, assay_error* error) {
  if (config->size < sizeof *config) return fail(error, ASSAY_INVALID, "a config that is too short");
  if (config->options.size != 2 || memcmp(config->options.data, "{}", 2) != 0)
    return fail(error, ASSAY_INVALID, "no options are known");
  *handle = calloc(1, sizeof(struct engine));
  return ASSAY_OK;
}

static int32_t submit(void* handle, const assay_request* request, assay_error* error) {
  struct engine* engine = handle;
  if (engine->waiting) return fail(error, ASSAY_EXHAUSTED, "one request at a time");
  if (request->ids.data != NULL || request->forced.size > 0) return fail(error, ASSAY_UNSUPPORTED, "takes text alone");
  if (request->text.size > sizeof engine->text) return fail(error, ASSAY_EXHAUSTED, "a text longer than 256 bytes");
  engine->waiting = 1;
  engine->id = request->id;
  engine->size = request->text.size;
  memcpy(engine->text, request->text.data, request->text.size);
  return ASSAY_OK;
}

static int32_t cancel(void* handle, uint64_t id, assay_error* error) {
  struct engine* engine = handle;
  if (!engine->waiting || engine->id != id) return fail(error, ASSAY_NOT_FOUND, "no such request");
  engine->waiting = 0;
  return ASSAY_OK;
}

static int32_t step(void* handle, const assay_event** events, size_t* count, size_t* pending, assay_error* error) {
  struct engine* engine = handle;
  (void)error;
  *count = (size_t)engine->waiting;
  *pending = 0;
  *events = &engine->event;
  engine->waiting = 0;
  engine->result = (assay_result){.size = sizeof(assay_result),
                                  .id = engine->id,
                                  .prompt = {engine->text, engine->size},
                                  .text = {engine->text, engine->size}};
  engine->event = (assay_event){
      .size = sizeof(assay_event), .kind = ASSAY_EVENT_FINISHED, .id = engine->id, .result = &engine->result};
  return ASSAY_OK;
}

static int32_t reset(void* handle, assay_error* error) {
  (void)error;
  ((struct engine*)handle)->waiting = 0;
  return ASSAY_OK;
}

static const table kTable = {.first = {.size = sizeof(table),
                                       .open = open_engine,
                                       .submit = submit,
                                       .cancel = cancel,
                                       .step = step,
                                       .reset = reset,
                                       .close = free}};

static const assay_plugin kPlugin = {.magic = ASSAY_PLUGIN_MAGIC,
                                     .size = sizeof(assay_plugin),
                                     .abi_major = ASSAY_ABI_MAJOR,
                                     .abi_minor = MINOR,
                                     .kind = ASSAY_ENGINE,
                                     .capabilities = ASSAY_CAP_TEXT,
                                     .name = NAME,
                                     .version = "1.0.0",
                                     .description = "of another generation",
                                     .options_schema = "{\"type\": \"object\", \"additionalProperties\": false}",
                                     .table = &kTable};

__attribute__((visibility("default"))) const assay_plugin* assay_plugin_query(uint32_t major, uint32_t minor,
                                                                              const assay_host* host) {
  (void)minor;
  (void)host;
  return major == ASSAY_ABI_MAJOR ? &kPlugin : NULL;
}
