#include "backends/cuda/fast/step.h"

namespace assay::cuda::fast {

cudaError_t decode_step(const StepArgs& args, const Launch& how) {
  const ModelWeights& model = *args.model;
  const StepBuffers& b = args.buffers;
  const int qkv_rows = model.groups * (model.heads_per_group + 2) * kHeadSize;
  uint32_t* done = b.counters;
  uint32_t* pick_tickets = b.counters + 1;
  uint32_t* attention_tickets = pick_tickets + args.tokens;
  cudaError_t error = cudaSuccess;
  const auto then = [&](cudaError_t next) { error = error == cudaSuccess ? next : error; };
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& layer = model.layers[i];
    then(norm_linear({.x = b.x,
                      .gamma = layer.attention_gamma,
                      .eps = model.eps,
                      .weight = layer.qkv,
                      .rows = qkv_rows,
                      .tokens = args.tokens,
                      .y = b.qkv,
                      .cleared = done},
                     how));
    const CacheView cache = {static_cast<char*>(args.keys) + i * args.layer_bytes,
                             static_cast<char*>(args.values) + i * args.layer_bytes, args.table, args.table_stride,
                             args.block_size};
    then(attention({.qkv = b.qkv,
                    .rotary = model.rotary,
                    .positions = b.positions,
                    .cache = cache,
                    .groups = model.groups,
                    .heads_per_group = model.heads_per_group,
                    .tokens = args.tokens,
                    .splits = args.splits,
                    .results = b.splits,
                    .tickets = attention_tickets,
                    .y = b.attended},
                   how));
    then(linear_residual(
        {.a = b.attended, .weight = layer.projection, .rows = kHidden, .tokens = args.tokens, .x = b.x}, how));
    const ExpertsArgs experts = {.weights = layer.experts,
                                 .gamma = layer.mlp_gamma,
                                 .eps = model.eps,
                                 .tokens = args.tokens,
                                 .rounded_logits = model.rounded_router,
                                 .x = b.x,
                                 .logits = b.router_logits,
                                 .done = done,
                                 .inner = b.inner,
                                 .shared_inner = b.shared_inner};
    then(experts_up(experts, how));
    then(experts_down(experts, how));
  }
  then(head({.x = b.x,
             .gamma = model.final_gamma,
             .eps = model.eps,
             .weight = model.output,
             .vocabulary = model.vocabulary,
             .tokens = args.tokens,
             .logits = b.logits},
            how));
  then(pick({.logits = b.logits,
             .embeddings = model.embeddings,
             .vocabulary = model.vocabulary,
             .tokens = args.tokens,
             .segments = b.segments,
             .tickets = pick_tickets,
             .ids = b.ids,
             .positions = b.positions,
             .logprobs = b.logprobs,
             .x = b.x},
            how));
  return error;
}

}  // namespace assay::cuda::fast
