/* The C border between assay and its plugins: the one header that both sides must read alike.
 *
 * A plugin is a shared object that exports one function, assay_plugin_query. It returns a descriptor whose `table` is
 * the function table of its kind. Rules that hold everywhere:
 *  - No exception and no C++ type crosses. Strings are UTF-8, pointer + length, not NUL-terminated unless said so.
 *  - The side that allocates frees. What a call receives is borrowed for that call alone; what a call hands out stays
 *    valid until the time named at its declaration.
 *  - Every struct that may grow begins with `size`, set by its writer to sizeof. Structs and tables are append-only; a
 *    reader looks at a member only if `size` covers it. A table entry may be null only where the comment says so.
 *  - Functions that return int32_t return an assay_code; on failure they fill `error` (never null) and leave their
 *    outputs untouched.
 *  - One thread at a time per handle; different handles may be used by different threads.
 * Versions: the major number changes when an old plugin cannot be read; the minor when a table or struct grew.
 */
#ifndef ASSAY_PLUGIN_ABI_H
#define ASSAY_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_ABI_MAJOR 1u
#define ASSAY_ABI_MINOR 3u
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
  ASSAY_CAP_L3 = 1u << 13  /* prefill in chunks of any size equals decode token by token */
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

/* ------------------------------------------------------------------------------------------------- backend ------ */

/* Sampling of one token from logits. Draws depend on (seed, prompt_index, position) alone. */
typedef struct assay_sampling {
  double temperature; /* > 0 */
  int32_t top_k;      /* 1: argmax of the raw logits, ties to the lower id; 0: off */
  int32_t reserved;
  double top_p; /* 0: off; not together with top_k > 0 */
  uint64_t seed;
  uint64_t prompt_index; /* index of the prompt within the case */
} assay_sampling;

typedef struct assay_model_source {
  uint32_t size;
  uint32_t reserved;
  assay_str config_json; /* assay::model::to_json of the resolved model */
  assay_str checkpoint;  /* path of the checkpoint folder */
  assay_str options;     /* JSON object, the backend's own options ("{}": defaults), e.g. {"isa":"avx2","threads":2} */
} assay_model_source;

typedef struct assay_model_info {
  uint32_t size;
  int32_t vocab_size;      /* columns of the logits */
  int32_t moe_layers;      /* layers that route */
  int32_t moe_topk;        /* 0 when no layer routes */
  int32_t max_positions;   /* largest sequence length the positions allow; 0: unlimited */
  int32_t logits_mantissa; /* bits of mantissa of the logits' dtype, hidden bit included: 24 fp32, 8 bf16 */
  uint64_t weight_bytes;   /* memory held by weights */
  assay_str device;        /* human-readable device, e.g. "cpu avx512 x2"; valid until the model is closed */
  uint64_t determinism;    /* since 1.2: ASSAY_CAP_L1 to L3 that hold with the options it was opened with */
} assay_model_info;

typedef struct assay_cache_spec {
  uint32_t size;
  uint32_t block_size;  /* tokens a block */
  uint32_t block_count; /* blocks in the pool */
  uint32_t reserved;
} assay_cache_spec;

/* Outputs of one run. Arrays are owned by the caller and sized as stated, null where not wanted. `rows` is the number
 * of trailing positions of the run that get outputs: rows = assay_run.output_rows, row r belongs to token count-rows+r.
 */
typedef struct assay_run_output {
  float* target_logprobs; /* (rows): log-softmax over the whole vocabulary of raw logits at targets[r] */
  int32_t* target_ranks;  /* (rows): 0 = the largest logit; ties count lower ids first */
  int32_t* argmax;        /* (rows) ties to the lower id */
  float* argmax_logprobs; /* (rows) */
  int32_t* top_ids;       /* (rows, top_n) descending logit, ties to the lower id */
  float* top_logprobs;    /* (rows, top_n) */
  int32_t* sampled;       /* (1): drawn from the last row by assay_run.sampling */
  float* sampled_logprob; /* (1): log-softmax of raw logits at *sampled, no temperature, no filter */
  uint16_t* routing;      /* (count, moe_layers, moe_topk): chosen experts, ascending expert id */
  float* logits;          /* (rows, vocab_size) */
} assay_run_output;

/* One sequence's part of a forward pass: `count` tokens at positions start .. start+count-1. */
typedef struct assay_run {
  const int32_t* ids;    /* (count); null: the token sampled for the same run index by the previous forward */
  uint32_t count;        /* >= 1 */
  uint32_t start;        /* tokens of this sequence already in the cache */
  const int32_t* blocks; /* block table: block i holds positions i*block_size ..; covers start+count tokens */
  uint32_t block_count;
  uint32_t output_rows;   /* 0 .. count */
  const int32_t* targets; /* (output_rows), -1: none; null: no targets */
  int32_t top_n;          /* 0: none */
  int32_t reserved;
  assay_sampling sampling; /* used when output.sampled is not null */
  assay_run_output output;
} assay_run;

enum { ASSAY_FORWARD_WAIT = 1u << 0 }; /* return when the outputs are written */

typedef struct assay_forward {
  uint32_t size;
  uint32_t flags;
  const assay_run* runs; /* sequences must be distinct */
  size_t run_count;
  /* Since 1.1. Null, or (run_count) arrays, each null or (count, moe_layers), owned by the caller: score of the last
   * expert chosen minus that of the best one left out, scores as the router compares them; infinity where none is left.
   */
  float* const* routing_margins;
} assay_forward;

typedef struct assay_backend_info {
  uint32_t size;
  int32_t usable;   /* 0: cannot run here; else a preference, higher is better */
  assay_str device; /* or the reason why it is not usable; static lifetime */
  /* Since 1.3: devices that worker processes can be spread over. Empty: none, as for a processor. Static lifetime. */
  assay_str device_variable; /* environment variable that names the devices a process may see: "CUDA_VISIBLE_DEVICES" */
  assay_str device_indices;  /* usable ones, "0,2": positions among those that the variable shows now */
} assay_backend_info;

/* Since 1.3: the device that a model runs on. */
typedef struct assay_device_facts {
  uint32_t size;
  uint32_t reserved;
  double read_bandwidth; /* bytes a second that it reads its memory at, measured during the call */
  uint64_t memory_used;  /* bytes of its memory that are in use, by whomever */
  uint64_t memory_total; /* bytes */
} assay_device_facts;

/* Since 1.3: all launches of one kind of kernel in one forward pass. */
typedef struct assay_kernel_time {
  assay_str name;
  uint64_t launches;
  double bytes;   /* that they cannot do without: read and written once */
  double flops;   /* a multiply-add counts two; 0: not declared */
  double seconds; /* from the start of each to the start of what follows it, waiting for launches included */
} assay_kernel_time;

typedef struct assay_backend_table {
  uint32_t size;
  uint32_t reserved;
  int32_t (*describe)(assay_backend_info* info, assay_error* error);
  /* Loads a model. The handle is used until close. */
  int32_t (*open)(const assay_model_source* source, void** model, assay_error* error);
  int32_t (*model_info)(void* model, assay_model_info* info, assay_error* error);
  /* A pool of KV blocks for this model; content undefined. Released before the model is closed. */
  int32_t (*make_cache)(void* model, const assay_cache_spec* spec, void** cache, assay_error* error);
  /* Runs all `runs` as one batch. Without ASSAY_FORWARD_WAIT, outputs are written once wait(ticket) returned. */
  int32_t (*forward)(void* model, void* cache, const assay_forward* forward, uint64_t* ticket, assay_error* error);
  int32_t (*wait)(void* model, uint64_t ticket, assay_error* error);
  void (*release)(void* cache);
  void (*close)(void* model);
  /* Since 1.3, for benchmarks; null, or answering ASSAY_UNSUPPORTED, where a backend measures nothing. Both wait.
   * `profile` does what `forward` does, one kernel after the other, with a clock around each; what it hands out is
   * valid until the next call on the model. */
  int32_t (*device_facts)(void* model, assay_device_facts* facts, assay_error* error);
  int32_t (*profile)(void* model, void* cache, const assay_forward* forward, const assay_kernel_time** kernels,
                     size_t* count, assay_error* error);
} assay_backend_table;

/* -------------------------------------------------------------------------------------------------- engine ------ */

typedef struct assay_engine_config {
  uint32_t size;
  uint32_t reserved;
  const assay_backend_table* backend; /* null for engines without ASSAY_CAP_NEEDS_BACKEND; valid until close */
  void* model;                        /* opened by the host on `backend`; closed by the host after the engine */
  assay_str model_config_json;        /* "{}" where there is no model */
  assay_str tokenizer_json;           /* assay::model::TokenizerSpec as JSON; "{}" where there is none */
  assay_str options;                  /* JSON object: engine options, see the engine's options_schema */
} assay_engine_config;

enum {
  ASSAY_WANT_LOGPROBS = 1u << 0, /* prompt and generated */
  ASSAY_WANT_ROUTING = 1u << 1,
  ASSAY_WANT_LOGITS = 1u << 2 /* since 1.1: generated_logits and generated_ranks; an engine may ignore it */
};

typedef struct assay_request {
  uint32_t size;
  uint32_t want;    /* ASSAY_WANT_* */
  uint64_t id;      /* chosen by the host, echoed in events; ascending in submission order */
  assay_str text;   /* prompt; ignored when ids.data is not null */
  assay_ids ids;    /* prompt as ids */
  assay_ids forced; /* token to take at generated position i, for i < forced.size, whatever was sampled;
                       logprobs are those of the forced tokens; EOD does not stop inside it */
  int32_t max_new_tokens;
  int32_t top_n; /* 0: none */
  assay_sampling sampling;
} assay_request;

/* One entry of a top-n list. Entries of one position: descending logprob. */
typedef struct assay_candidate {
  int32_t id; /* -1 where the engine knows only text */
  int32_t reserved;
  double logprob;
  assay_str text; /* of this token alone */
} assay_candidate;

typedef struct assay_candidates { /* positions x (counts[p] entries), flattened */
  const assay_candidate* entries;
  const uint32_t* counts;
  size_t positions;
} assay_candidates;

typedef struct assay_result {
  uint32_t size;
  uint32_t reserved;
  uint64_t id;
  assay_str prompt;                 /* the prompt as text */
  assay_str text;                   /* generated text */
  assay_ids prompt_ids;             /* empty where unknown */
  assay_ids tokens;                 /* generated */
  assay_doubles prompt_logprobs;    /* (prompt_ids.size - 1) or empty */
  assay_doubles generated_logprobs; /* (tokens.size) or empty */
  assay_candidates prompt_top_n;
  assay_candidates generated_top_n;
  assay_doubles tpot;      /* (tokens.size) seconds; [0] holds the prefill */
  double latency;          /* seconds; 0: not known */
  const uint16_t* routing; /* (routing_tokens, moe_layers, moe_topk) or null */
  size_t routing_tokens;   /* prompt tokens + generated tokens - 1 */
  size_t moe_layers;
  size_t moe_topk;
  uint64_t prefill_tokens; /* prompt tokens computed */
  double prefill_seconds;
  double decode_seconds;
  /* JSON object with further fields for the result ("" : none). A member "engine_counters", an object of numbers, says
   * what happened to the request: "batch" (most requests in one forward with it, itself included), "steps", "chunks",
   * "cached_tokens", "recomputed_tokens", "preemptions"; metamorphic relations look at them. */
  assay_str extra;
  /* Since 1.1 */
  assay_ids generated_ranks;      /* (tokens.size) rank of each token among the logits, 0 = largest; or empty */
  assay_doubles generated_logits; /* (tokens.size) raw logit of each token; or empty */
  const float* routing_margins;   /* (routing_tokens, moe_layers): router score of the last expert chosen minus that of
                                     the best one left out; or null */
} assay_result;

typedef enum assay_event_kind {
  ASSAY_EVENT_TOKEN = 1,
  ASSAY_EVENT_FINISHED = 2,
  ASSAY_EVENT_FAILED = 3
} assay_event_kind;

typedef struct assay_event {
  uint32_t size;
  uint32_t kind;              /* assay_event_kind */
  uint64_t id;                /* request */
  int32_t token;              /* TOKEN */
  int32_t code;               /* FAILED: assay_code */
  const assay_result* result; /* FINISHED */
  assay_str message;          /* FAILED */
} assay_event;

typedef struct assay_engine_table {
  uint32_t size;
  uint32_t reserved;
  int32_t (*open)(const assay_engine_config* config, void** engine, assay_error* error);
  /* Queues a request; everything in it is copied. A refused request leaves the others untouched. */
  int32_t (*submit)(void* engine, const assay_request* request, assay_error* error);
  int32_t (*cancel)(void* engine, uint64_t id, assay_error* error);
  /* Does one step of work. Events stay valid until the next call on this engine. `pending` = requests not yet finished
   * or failed. A failure of the call itself means that the engine is broken and must be closed. */
  int32_t (*step)(void* engine, const assay_event** events, size_t* event_count, size_t* pending, assay_error* error);
  /* Drops all requests and state; options and model stay. */
  int32_t (*reset)(void* engine, assay_error* error);
  void (*close)(void* engine);
} assay_engine_table;

/* ---------------------------------------------------------------------------------------------- comparator ------ */

enum { /* which members of an assay_record hold data */
       ASSAY_HAS_PROMPT = 1u << 0,
       ASSAY_HAS_TEXT = 1u << 1,
       ASSAY_HAS_TOKENS = 1u << 2,
       ASSAY_HAS_LOGPROBS = 1u << 3,
       ASSAY_HAS_TOP_N = 1u << 4,
       ASSAY_HAS_ROUTING = 1u << 5,
       ASSAY_HAS_PROMPT_IDS = 1u << 6,
       ASSAY_HAS_TPOT = 1u << 7,           /* since 1.1 */
       ASSAY_HAS_LATENCY = 1u << 8,        /* since 1.1 */
       ASSAY_HAS_ROUTING_MARGINS = 1u << 9 /* since 1.1 */
};

typedef struct assay_record { /* one request of a golden or of a result */
  uint32_t size;
  uint32_t has; /* ASSAY_HAS_* */
  assay_str prompt;
  assay_str text;
  assay_ids prompt_ids;
  assay_ids tokens;
  assay_doubles logprobs;  /* prompt (P-1) then generated (G) */
  assay_candidates top_n;  /* generated positions */
  const uint16_t* routing; /* (routing_tokens, moe_layers, moe_topk) */
  size_t routing_tokens;
  size_t moe_layers;
  size_t moe_topk;
  assay_ids routing_positions; /* token indices that the rows of `routing` belong to; empty: 0, 1, 2 ... */
  /* Since 1.1 */
  assay_doubles tpot;           /* (tokens.size) seconds */
  double latency;               /* seconds */
  const float* routing_margins; /* (routing_tokens, moe_layers) */
} assay_record;

typedef struct assay_pair {
  assay_str id;                  /* request id */
  const assay_record* reference; /* golden */
  const assay_record* candidate; /* result under test */
} assay_pair;

typedef struct assay_quantity { /* top-level number or list: throughput, mem-max-allocated-bytes ... */
  assay_str name;
  assay_doubles values;
} assay_quantity;

typedef struct assay_judgement {
  uint32_t size;
  uint32_t known_completion; /* 1: text is judged up to the first blank line of the reference */
  assay_str metric;          /* name in METRICS */
  const assay_pair* pairs;   /* request sets were checked by the core: every pair has both sides */
  size_t pair_count;
  const assay_quantity* reference_quantities;
  size_t reference_quantity_count;
  const assay_quantity* candidate_quantities;
  size_t candidate_quantity_count;
  /* JSON object of what is known, each member absent where it is not: {"tolerance": ASSAY.tolerance of the metric,
   * "noise": {"max", "p99", "relative"} of the golden's noise model, "dtype": "fp32" | "fp16" | "bf16", the coarsest
   * dtype of logits on either side, "logit": the largest magnitude of a logit, "sources": [paths of known-completion
   * texts]} */
  assay_str options;
} assay_judgement;

typedef enum assay_finding_kind {
  ASSAY_FINDING_EQUAL = 1,   /* `compared` values are equal */
  ASSAY_FINDING_WITHIN = 2,  /* unequal, all within tolerance */
  ASSAY_FINDING_BEYOND = 3,  /* numbers beyond tolerance */
  ASSAY_FINDING_DIFFERS = 4, /* a token or text differs */
  ASSAY_FINDING_BROKEN = 5,  /* NaN, infinity, empty, truncated: a side is not a valid record */
  ASSAY_FINDING_MISSING = 6, /* a side lacks what this metric needs */
  ASSAY_FINDING_NOTE = 7     /* reported, does not judge */
} assay_finding_kind;

typedef struct assay_finding {
  uint32_t size;
  uint32_t kind;     /* assay_finding_kind */
  assay_str id;      /* request id; empty: the whole case */
  int64_t index;     /* first position concerned, in the metric's own sequence; -1: none */
  uint64_t compared; /* values compared */
  uint64_t differing;
  double max_abs_difference;         /* 0 where it means nothing */
  double smallest_passing_tolerance; /* 0 where it means nothing */
  assay_str message;                 /* one line */
} assay_finding;

typedef struct assay_sink { /* findings are copied before `finding` returns */
  void* context;
  void (*finding)(void* context, const assay_finding* finding);
} assay_sink;

typedef struct assay_comparator_table {
  uint32_t size;
  uint32_t reserved;
  /* Stateless and thread-safe. Emits at least one finding per pair it judged. */
  int32_t (*judge)(const assay_judgement* judgement, const assay_sink* sink, assay_error* error);
  /* Since 1.1: names in METRICS that this comparator serves; null: its own name alone. Static lifetime. */
  const char* const* metrics;
  size_t metric_count;
} assay_comparator_table;

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_PLUGIN_ABI_H */
