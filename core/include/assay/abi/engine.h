/* From requests to tokens: engine plugins. Part of assay/plugin_abi.h, whose rules hold. */
#ifndef ASSAY_ABI_ENGINE_H
#define ASSAY_ABI_ENGINE_H

#include "assay/abi/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

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
  assay_ids tokens;                 /* generated; empty beside a text where the engine knows no ids */
  assay_doubles prompt_logprobs;    /* (prompt_ids.size - 1) or empty */
  assay_doubles generated_logprobs; /* (tokens.size) or empty; without ids, one a generated token */
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
   * "cached_tokens", "recomputed_tokens", "preemptions"; metamorphic relations look at them. "restarts": how often the
   * program that answers was begun anew meanwhile, each counted in one result: told with the verdict. */
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

typedef struct assay_event { /* never grows: `step` hands out an array of them */
  uint32_t size;
  uint32_t kind;              /* assay_event_kind */
  uint64_t id;                /* request */
  int32_t token;              /* TOKEN */
  int32_t code;               /* FAILED: assay_code */
  const assay_result* result; /* FINISHED */
  assay_str message;          /* FAILED */
} assay_event;

/* Since 1.4: what an opened engine can do, found out rather than assumed. */
typedef struct assay_engine_info {
  uint32_t size;
  uint32_t reserved;
  uint64_t capabilities; /* ASSAY_CAP_* of this handle: never more than the descriptor has */
  /* JSON object of strings for provenance; a member named as a capability ("top_n") says how that was found out. */
  assay_str facts;
} assay_engine_info;

/* Since 1.4: one run of a training program. Borrowed for the call. */
typedef struct assay_training {
  uint32_t size;
  int32_t run;   /* of the case: 1, 2, ... */
  assay_str job; /* JSON object: what to run and where its files go, see docs/training.md */
} assay_training;

typedef struct assay_training_result {
  uint32_t size;
  int32_t exit_code; /* of the program; -1 where a signal ended it */
  int32_t signal;    /* 0: it exited */
  int32_t restarts;  /* by its launcher */
  assay_str message; /* one line: how it ended, and the end of its log where it failed; valid until the next call */
} assay_training_result;

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
  /* Since 1.4. Null: the descriptor's capabilities hold. */
  int32_t (*info)(void* engine, assay_engine_info* info, assay_error* error);
  /* Since 1.4; null without ASSAY_CAP_TRAIN. Returns when the program has ended, however it ended: that is no failure
   * of the call. Ends it early once the host says `cancelled`, then answers ASSAY_CANCELLED. */
  int32_t (*train)(void* engine, const assay_training* training, assay_training_result* result, assay_error* error);
} assay_engine_table;

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_ABI_ENGINE_H */
