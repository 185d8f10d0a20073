/* Judging one metric: comparator plugins. Part of assay/plugin_abi.h, whose rules hold. */
#ifndef ASSAY_ABI_COMPARATOR_H
#define ASSAY_ABI_COMPARATOR_H

#include "assay/abi/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#endif /* ASSAY_ABI_COMPARATOR_H */
