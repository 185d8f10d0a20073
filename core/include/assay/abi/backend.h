/* The arithmetic of a model on one kind of device: backend plugins. Part of assay/plugin_abi.h, whose rules hold. */
#ifndef ASSAY_ABI_BACKEND_H
#define ASSAY_ABI_BACKEND_H

#include "assay/abi/common.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_ABI_BACKEND_H */
