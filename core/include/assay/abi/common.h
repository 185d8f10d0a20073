/* What all kinds of plugins share. Part of assay/plugin_abi.h, whose rules hold. */
#ifndef ASSAY_ABI_COMMON_H
#define ASSAY_ABI_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_ABI_MAJOR 1u
#define ASSAY_ABI_MINOR 4u
#define ASSAY_PLUGIN_MAGIC 0x59415341u /* "ASAY" */

typedef enum assay_code {
  ASSAY_OK = 0,
  ASSAY_INVALID = 1,     /* the input is wrong */
  ASSAY_NOT_FOUND = 2,   /* a named thing does not exist */
  ASSAY_UNSUPPORTED = 3, /* well-formed, cannot be done here */
  ASSAY_EXHAUSTED = 4,   /* a limit was reached: memory, blocks, sequence length */
  ASSAY_INFRA = 5,       /* device, driver, disk failed */
  ASSAY_CANCELLED = 6,
  ASSAY_INTERNAL = 7 /* a bug of the plugin */
} assay_code;

typedef struct assay_error { /* owned by the caller; a longer message is cut */
  int32_t code;
  char message[2044]; /* NUL-terminated: thing, seen, expected, remedy, on one line */
} assay_error;

typedef struct assay_str {
  const char* data;
  size_t size; /* bytes */
} assay_str;

typedef struct assay_ids {
  const int32_t* data;
  size_t size;
} assay_ids;

typedef struct assay_doubles {
  const double* data;
  size_t size;
} assay_doubles;

typedef enum assay_log_level {
  ASSAY_LOG_DEBUG = 0,
  ASSAY_LOG_INFO = 1,
  ASSAY_LOG_WARN = 2,
  ASSAY_LOG_ERROR = 3
} assay_log_level;

/* Given to assay_plugin_query; valid until the process ends; callable from any thread. */
typedef struct assay_host {
  uint32_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  void* context;                                                /* first argument of every function below */
  void (*log)(void* context, int32_t level, assay_str message); /* one line, kept in the case's engine.log */
  int32_t (*cancelled)(void* context);                          /* 1 once the run is to stop soon */
  uint64_t (*now_ns)(void* context);                            /* monotonic clock, nanoseconds */
} assay_host;

typedef enum assay_kind { ASSAY_ENGINE = 1, ASSAY_BACKEND = 2, ASSAY_COMPARATOR = 3, ASSAY_LAUNCHER = 4 } assay_kind;

/* What a plugin can do; an engine's own bits are ANDed with nothing: it reports what it can do on the backend it got.
 */
enum {
  ASSAY_CAP_LOGPROBS = 1u << 0,        /* logprob of every generated token */
  ASSAY_CAP_TOP_N = 1u << 1,           /* top-n logprobs */
  ASSAY_CAP_PROMPT_LOGPROBS = 1u << 2, /* logprobs of prompt tokens 1.. */
  ASSAY_CAP_FORCED_TOKENS = 1u << 3,   /* generated tokens can be forced */
  ASSAY_CAP_ROUTING = 1u << 4,         /* expert indices per token, layer, k */
  ASSAY_CAP_BATCH = 1u << 5,           /* more than one request at once */
  ASSAY_CAP_SEED = 1u << 6,            /* seeded sampling */
  ASSAY_CAP_TEXT = 1u << 7,            /* generated text */
  ASSAY_CAP_TOKENS = 1u << 8,          /* generated token ids */
  ASSAY_CAP_NEEDS_BACKEND = 1u << 9,   /* engine: does no arithmetic of its own */
  ASSAY_CAP_RECORDED = 1u << 10,       /* engine: reads recorded results instead of running a model */
  /* Since 1.2: determinism levels that hold in the default options (docs/determinism.md), each bit for bit. An engine's
   * bits hold on a backend that has them too; what a model opened with other options holds, its info says. */
  ASSAY_CAP_L1 = 1u << 11, /* same binary, device and inputs: same results */
  ASSAY_CAP_L2 = 1u << 12, /* a result does not depend on neighbours, batch size or slot */
  ASSAY_CAP_L3 = 1u << 13, /* prefill in chunks of any size equals decode token by token */
  /* Since 1.4 */
  ASSAY_CAP_TRAIN = 1u << 14 /* engine: runs training programs */
};

typedef struct assay_plugin {
  uint32_t magic; /* ASSAY_PLUGIN_MAGIC */
  uint32_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t kind; /* assay_kind */
  uint32_t reserved;
  uint64_t capabilities;      /* ASSAY_CAP_* */
  const char* name;           /* NUL-terminated; unique within its kind, e.g. "static_legacy" */
  const char* version;        /* NUL-terminated */
  const char* description;    /* NUL-terminated, one line */
  const char* options_schema; /* NUL-terminated JSON schema of the options object it accepts */
  const void* table;          /* assay_engine_table, assay_backend_table, ... by kind */
} assay_plugin;

/* The one exported symbol. Returns a descriptor with static lifetime, or null when this ABI cannot be served. */
typedef const assay_plugin* (*assay_plugin_query_fn)(uint32_t abi_major, uint32_t abi_minor, const assay_host* host);

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_ABI_COMMON_H */
