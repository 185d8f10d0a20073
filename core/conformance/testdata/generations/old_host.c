/* A host as it was for the ABI that it is built with. Usage: old_host ENGINE.so COMPARATOR.so
 * Opens the engine, has one request answered, and the answer judged: once against itself, once against another text.
 * What it hands over ends where its own structs end, followed by memory that cannot be read. Ends with 0 when all is as
 * it should be. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "assay/plugin_abi.h"

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "old host of ABI %u.%u: %s\n", ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, what);
  exit(1);
}

/* A copy that ends at the end of a page; the next page cannot be touched. */
static void* at_edge(const void* from, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(pages != MAP_FAILED, "no memory");
  mprotect(pages + page, page, PROT_NONE);
  return memcpy(pages + page - size, from, size);
}

static void log_line(void* context, int32_t level, assay_str message) {
  (void)context;
  (void)level;
  (void)message;
}
static int32_t cancelled(void* context) {
  (void)context;
  return 0;
}
static uint64_t now_ns(void* context) {
  (void)context;
  return 0;
}

static const assay_plugin* load(const char* file, uint32_t kind) {
  static const assay_host host = {sizeof(assay_host), ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, 0, NULL,
                                  log_line,           cancelled,       now_ns};
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  need(library != NULL, dlerror());
  assay_plugin_query_fn query;
  *(void**)&query = dlsym(library, "assay_plugin_query");
  need(query != NULL, "no assay_plugin_query");
  const assay_plugin* plugin = query(ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, at_edge(&host, sizeof host));
  need(plugin != NULL && plugin->magic == ASSAY_PLUGIN_MAGIC && plugin->kind == kind, "no descriptor of that kind");
  need(plugin->abi_major == ASSAY_ABI_MAJOR && plugin->size >= sizeof(assay_plugin),
       "a descriptor that cannot be read");
  return plugin;
}

static uint32_t seen;
static void finding(void* context, const assay_finding* one) {
  (void)context;
  seen = one->kind;
}

static uint32_t judge(const assay_comparator_table* table, assay_str golden, assay_str result) {
  const assay_record records[2] = {{.size = sizeof(assay_record), .has = ASSAY_HAS_TEXT, .text = golden},
                                   {.size = sizeof(assay_record), .has = ASSAY_HAS_TEXT, .text = result}};
  const assay_pair pair = {{"0", 1}, at_edge(&records[0], sizeof records[0]), at_edge(&records[1], sizeof records[1])};
  const assay_judgement judgement = {.size = sizeof(assay_judgement),
                                     .metric = {"text", 4},
                                     .pairs = at_edge(&pair, sizeof pair),
                                     .pair_count = 1,
                                     .options = {"{}", 2}};
  const assay_sink sink = {NULL, finding};
  assay_error error;
  seen = 0;
  need(table->judge(at_edge(&judgement, sizeof judgement), &sink, &error) == ASSAY_OK, "judge failed");
  return seen;
}

int main(int argc, char** argv) {
  need(argc == 3, "expected ENGINE.so COMPARATOR.so");
  const assay_engine_table* engine = load(argv[1], ASSAY_ENGINE)->table;
  const assay_comparator_table* comparator = load(argv[2], ASSAY_COMPARATOR)->table;
  assay_error error;
  void* handle = NULL;
  const assay_engine_config config = {.size = sizeof(assay_engine_config),
                                      .model_config_json = {"{}", 2},
                                      .tokenizer_json = {"{}", 2},
                                      .options = {"{}", 2}};
  need(engine->open(at_edge(&config, sizeof config), &handle, &error) == ASSAY_OK, "open failed");
  const assay_request request = {.size = sizeof(assay_request), .id = 7, .text = {"gold", 4}, .max_new_tokens = 4};
  need(engine->submit(handle, at_edge(&request, sizeof request), &error) == ASSAY_OK, "submit failed");
  const assay_event* events = NULL;
  size_t count = 0;
  size_t pending = 1;
  need(engine->step(handle, &events, &count, &pending, &error) == ASSAY_OK, "step failed");
  need(count == 1 && pending == 0 && events[0].kind == ASSAY_EVENT_FINISHED && events[0].id == 7, "no result");
  const assay_str text = events[0].result->text;
  need(text.size == 4 && memcmp(text.data, "gold", 4) == 0, "another text");
  need(judge(comparator, text, text) == ASSAY_FINDING_EQUAL, "equal texts are not EQUAL");
  need(judge(comparator, text, (assay_str){"gilt", 4}) == ASSAY_FINDING_DIFFERS, "other texts do not DIFFER");
  engine->close(handle);
  printf("a host of ABI %u.%u was served\n", ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR);
  return 0;
}
