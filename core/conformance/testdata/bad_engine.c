/* An engine that answers every request with its own prompt, and does one thing that it must not do. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assay/plugin_abi.h"
#include "bad.h"

enum { MOST = 64 };

struct request {
  uint64_t id;
  char* text;
  size_t size;
  const assay_request* kept;
  uint64_t forced;
};

struct engine {
  struct request waiting[MOST];
  size_t count;
  char* texts[2 * MOST];
  assay_result results[2 * MOST];
  assay_event events[2 * MOST];
  size_t text_count;
  int served;
};

static const assay_host* host;
static assay_result shared_results[2 * MOST];
static int served_by_all;

static int32_t fail(assay_error* error, int32_t code, const char* message) {
  error->code = BAD == OTHER_CODE_IN_ERROR ? ASSAY_INFRA : code;
  snprintf(error->message, sizeof error->message, "%s%s", message,
           BAD == MESSAGE_OF_TWO_LINES ? "\nand more"
           : BAD == SAYS_NO_UTF8       ? " \xC0\xAF" /* overlong */
                                       : "");
  if (BAD == MESSAGE_WITHOUT_END) memset(error->message, 'x', sizeof error->message);
  return code;
}

static int is_empty_object(assay_str text) {
  return text.size == 0 || (text.size == 2 && memcmp(text.data, "{}", 2) == 0);
}

static int32_t open_engine(const assay_engine_config* config, void** handle, assay_error* error) {
  if (BAD == TOUCHES_OUTPUTS) *handle = NULL;
  if (BAD == REFUSES_LONGER_STRUCTS && config->size != sizeof *config)
    return fail(error, ASSAY_INVALID, "config of another size");
  if (!is_empty_object(config->options) && BAD != TAKES_ANY_OPTION)
    return fail(error, ASSAY_INVALID, "no options are known");
  *handle = calloc(1, sizeof(struct engine));
  if (BAD == LEAKS && malloc(4096) == NULL) return fail(error, ASSAY_EXHAUSTED, "no memory");
  if (BAD == LEAKS_FILES && open("/dev/null", O_RDONLY) < 0) return fail(error, ASSAY_EXHAUSTED, "no file");
  return ASSAY_OK;
}

static int32_t submit(void* handle, const assay_request* request, assay_error* error) {
  struct engine* engine = handle;
  if (request->ids.data != NULL) return fail(error, ASSAY_UNSUPPORTED, "takes text");
  if (request->forced.size > 0 && BAD != IGNORES_FORCED && BAD != CLAIMS_FORCED)
    return fail(error, ASSAY_UNSUPPORTED, "no forced tokens");
  if (BAD == REFUSES_LOGPROBS && (request->want & ASSAY_WANT_LOGPROBS) != 0)
    return fail(error, ASSAY_UNSUPPORTED, "no logprobs today");
  if (engine->count == MOST) return fail(error, ASSAY_EXHAUSTED, "too many requests");
  if (BAD == CRASHES_ON_EMPTY && request->text.size == 0) abort();
  if (BAD == WRITES_INTO_THE_REQUEST) ((assay_request*)request)->top_n = 1;
  struct request* own = &engine->waiting[engine->count++];
  own->id = request->id;
  own->size = request->text.size;
  own->text = malloc(own->size + 1);
  memcpy(own->text, request->text.data, own->size);
  own->kept = request;
  return ASSAY_OK;
}

static int32_t cancel(void* handle, uint64_t id, assay_error* error) {
  struct engine* engine = handle;
  for (size_t i = 0; i < engine->count; ++i) {
    if (engine->waiting[i].id != id) continue;
    free(engine->waiting[i].text);
    memmove(&engine->waiting[i], &engine->waiting[i + 1], (engine->count - i - 1) * sizeof(struct request));
    --engine->count;
    return ASSAY_OK;
  }
  return fail(error, ASSAY_NOT_FOUND, "no such request");
}

static void free_texts(struct engine* engine) {
  for (size_t i = 0; i < engine->text_count; ++i) free(engine->texts[i]);
  engine->text_count = 0;
}

/* The prompt, with what makes it wrong. */
static char* answer_to(struct engine* engine, const struct request* request, size_t* size) {
  char* text = malloc(request->size + 32);
  memcpy(text, request->text, request->size);
  text[request->size] = '\0';
  if (BAD == KEEPS_THE_REQUEST) memcpy(text, request->kept->text.data, request->kept->text.size);
  if (BAD == CLAIMS_L1 || BAD == KEEPS_STATE_AT_RESET) sprintf(text + request->size, " %d", engine->served);
  if (BAD == CLAIMS_L2) sprintf(text + request->size, " %d", (int)engine->count);
  if (BAD == SHARES_STATE) sprintf(text + request->size, " %d", served_by_all);
  if (BAD == WRITES_NO_UTF8) strcpy(text + request->size, "\xED\xA0\x80"); /* half of a surrogate pair */
  ++engine->served;
  ++served_by_all;
  *size = strlen(text);
  return text;
}

static int32_t step(void* handle, const assay_event** events, size_t* event_count, size_t* pending,
                    assay_error* error) {
  struct engine* engine = handle;
  (void)error;
  while (BAD == HANGS && engine->count > 0) usleep(1000);
  if (BAD == LOGS_TWO_LINES && host != NULL) host->log(host->context, ASSAY_LOG_INFO, (assay_str){"one\ntwo", 7});
  free_texts(engine);
  size_t made = 0;
  for (size_t i = 0; i < engine->count; ++i) {
    struct request* request = &engine->waiting[i];
    if (BAD == FORGETS_A_REQUEST && i == 1) continue;
    for (int ends = BAD == ENDS_TWICE ? 2 : 1; ends > 0; --ends) {
      assay_result* result = BAD == SHARES_RESULTS ? &shared_results[0] : &engine->results[made];
      memset(result, 0, sizeof *result);
      result->size = sizeof *result;
      result->id = request->id;
      char* text = answer_to(engine, request, &result->text.size);
      result->text.data = text;
      if (BAD == FREES_RESULTS_EARLY) free(text);
      if (BAD != FREES_RESULTS_EARLY) engine->texts[engine->text_count++] = text;
      assay_event* event = &engine->events[made++];
      memset(event, 0, sizeof *event);
      event->size = sizeof *event;
      event->kind = ASSAY_EVENT_FINISHED;
      event->id = request->id;
      event->result = result;
      if (BAD != FAILS_BESIDE_OTHERS || i == 0) continue;
      event->kind = ASSAY_EVENT_FAILED;
      event->code = ASSAY_INTERNAL;
      event->message = (assay_str){"one at a time", 13};
    }
  }
  for (size_t i = 0; i < engine->count; ++i) free(engine->waiting[i].text);
  engine->count = 0;
  *events = engine->events;
  *event_count = made;
  *pending = BAD == MISCOUNTS && made > 0 ? 1 : 0;
  return ASSAY_OK;
}

static void forget(struct engine* engine) {
  for (size_t i = 0; i < engine->count; ++i) free(engine->waiting[i].text);
  engine->count = 0;
  free_texts(engine);
}

static int32_t reset(void* handle, assay_error* error) {
  (void)error;
  forget(handle);
  return ASSAY_OK;
}

static void close_engine(void* handle) {
  forget(handle);
  free(handle);
}

static int32_t info(void* handle, assay_engine_info* out, assay_error* error) {
  (void)handle;
  (void)error;
  out->capabilities = ASSAY_CAP_TEXT | ASSAY_CAP_BATCH;
  if (BAD == WRITES_BEYOND_SIZE || out->size >= sizeof *out) out->facts = (assay_str){"{}", 2};
  return ASSAY_OK;
}

static const uint64_t kCapabilities =
    ASSAY_CAP_TEXT | ASSAY_CAP_BATCH | (BAD == CLAIMS_LOGPROBS || BAD == REFUSES_LOGPROBS ? ASSAY_CAP_LOGPROBS : 0) |
    (BAD == CLAIMS_FORCED ? ASSAY_CAP_FORCED_TOKENS : 0) | (BAD == CLAIMS_SEED ? ASSAY_CAP_SEED : 0) |
    (BAD == CLAIMS_L2 ? ASSAY_CAP_L2 : 0) |
    (BAD == CLAIMS_L1 || BAD == KEEPS_STATE_AT_RESET || BAD == SHARES_STATE || BAD == GOOD ? ASSAY_CAP_L1 : 0);

static const assay_engine_table kTable = {sizeof(assay_engine_table),
                                          0,
                                          open_engine,
                                          submit,
                                          cancel,
                                          step,
                                          reset,
                                          close_engine,
                                          BAD == WRITES_BEYOND_SIZE ? info : NULL,
                                          NULL};

static const assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                                     sizeof(assay_plugin),
                                     ASSAY_ABI_MAJOR,
                                     ASSAY_ABI_MINOR,
                                     ASSAY_ENGINE,
                                     0,
                                     kCapabilities,
                                     NAME,
                                     "1.0.0",
                                     "made to be found out",
                                     BAD == BREAKS_ITS_SCHEMA
                                         ? "{\"type\": \"object\", \"required\": [\"a\"]"
                                         : "{\"type\": \"object\", \"additionalProperties\": false}",
                                     &kTable};

__attribute__((visibility("default"))) const assay_plugin* assay_plugin_query(uint32_t major, uint32_t minor,
                                                                              const assay_host* from) {
  (void)minor;
  host = from;
  return major == ASSAY_ABI_MAJOR || BAD == SERVES_ANY_MAJOR ? &kPlugin : NULL;
}
