#include "backends/cuda/fast/step.h"

#include <algorithm>

#include "backends/cuda/fast/kernel_info.h"
#include "backends/cuda/fast/persistent.h"

namespace assay::cuda::fast {
namespace {

// Puts one buffer behind the other, each at a multiple of 256 bytes; without memory it only counts.
class Layout {
 public:
  explicit Layout(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(size_t count) {
    T* const at = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  size_t bytes_ = 0;
};

StepBuffers lay_out(const StepShape& shape, Layout& layout) {
  const auto tokens = static_cast<size_t>(shape.tokens);
  const auto groups = static_cast<size_t>(shape.groups);
  const int heads = shape.groups * shape.heads_per_group;
  const int qkv_rows = (heads + 2 * shape.groups) * kHeadSize;
  StepBuffers b;
  b.x = layout.take<float>(tokens * kHidden);
  b.qkv = layout.take<float>(tokens * static_cast<size_t>(qkv_rows));
  b.attended = layout.take<uint16_t>(tokens * kHidden);
  b.splits = layout.take<SplitResult>(tokens * static_cast<size_t>(heads) * static_cast<size_t>(shape.splits));
  b.router_logits = layout.take<float>(tokens * static_cast<size_t>(shape.experts));
  b.inner = layout.take<uint16_t>(tokens * static_cast<size_t>(shape.inner) + kSegment);
  b.shared_inner = layout.take<uint16_t>(tokens * static_cast<size_t>(shape.shared_width) + kSegment);
  b.segments = layout.take<SegmentResult>(tokens * static_cast<size_t>(vocabulary_segments(shape.vocabulary)));
  b.counters = layout.take<uint32_t>(1 + tokens * (1 + groups));
  b.grid_counters = layout.take<uint32_t>(kPersistentCounters);
  b.tagged_splits = layout.take<uint64_t>(tokens * static_cast<size_t>(heads * shape.splits * kSplitNumbers));
  b.board =
      layout.take<uint32_t>(2 * static_cast<size_t>(shape.layers) * tokens * static_cast<size_t>(board_size(shape)));
  b.shape = shape;
  return b;
}

}  // namespace

StepShape step_shape(const ModelWeights& model, int tokens, int positions) {
  StepShape shape = {.groups = model.groups,
                     .heads_per_group = model.heads_per_group,
                     .vocabulary = model.vocabulary,
                     .tokens = tokens,
                     .splits = (positions + kSplit - 1) / kSplit};
  shape.layers = static_cast<int>(model.layers.size());
  for (const LayerWeights& layer : model.layers) {
    shape.widest = std::max(shape.widest, layer.experts.topk * layer.experts.width + layer.experts.shared_width);
    shape.experts = std::max(shape.experts, layer.experts.experts);
    shape.inner = std::max(shape.inner, layer.experts.topk * layer.experts.width);
    shape.shared_width = std::max(shape.shared_width, layer.experts.shared_width);
  }
  return shape;
}

size_t step_memory(const StepShape& shape) {
  Layout layout(nullptr);
  lay_out(shape, layout);
  return layout.bytes();
}

StepBuffers step_buffers(const StepShape& shape, void* memory) {
  Layout layout(memory);
  return lay_out(shape, layout);
}

cudaError_t decode_step(const StepArgs& args, const Launch& how) {
  const ModelWeights& model = *args.model;
  const StepBuffers& b = args.buffers;
  const int qkv_rows = model.groups * (model.heads_per_group + 2) * kHeadSize;
  uint32_t* done = b.counters;
  uint32_t* pick_tickets = b.counters + 1;
  uint32_t* attention_tickets = pick_tickets + args.tokens;
  cudaError_t error = cudaSuccess;
  const auto then = [&](cudaError_t next) { error = error == cudaSuccess ? next : error; };
  const auto mark = [&](const char* kernel, const LayerWeights& layer) {
    if (how.mark == nullptr) return;
    const int active = std::min(layer.experts.experts, args.tokens * layer.experts.topk);
    const StepPoint point = {.tokens = args.tokens, .position = how.mark->position, .active = active};
    how.mark->call(how.mark->context, kernel, static_cast<double>(find_kernel(kernel).bytes(model, layer, point)));
  };
  mark("embed_rows", {});
  then(embed_rows({.embeddings = model.embeddings, .ids = args.ids, .tokens = args.tokens, .x = b.x}, how));
  uint16_t* chosen = args.chosen;
  float* margins = args.margins;
  CacheView cache = args.cache;
  for (const LayerWeights& layer : model.layers) {
    mark("norm_linear", layer);
    then(norm_linear({.x = b.x,
                      .gamma = layer.attention_gamma,
                      .eps = model.eps,
                      .weight = layer.qkv,
                      .rows = qkv_rows,
                      .tokens = args.tokens,
                      .y = b.qkv,
                      .cleared = done},
                     how));
    mark("attention", layer);
    then(attention({.qkv = b.qkv,
                    .rotary = model.rotary,
                    .positions = args.positions,
                    .cache = cache,
                    .groups = model.groups,
                    .heads_per_group = model.heads_per_group,
                    .tokens = args.tokens,
                    .splits = args.splits,
                    .results = b.splits,
                    .tickets = attention_tickets,
                    .y = b.attended},
                   how));
    mark("linear_residual", layer);
    then(linear_residual(
        {.a = b.attended, .weight = layer.projection, .rows = kHidden, .tokens = args.tokens, .x = b.x}, how));
    const bool routed = layer.experts.experts > 0;
    const ExpertsArgs experts = {.weights = layer.experts,
                                 .gamma = layer.mlp_gamma,
                                 .eps = model.eps,
                                 .tokens = args.tokens,
                                 .rounded_logits = model.rounded_router,
                                 .x = b.x,
                                 .logits = b.router_logits,
                                 .chosen = routed ? chosen : nullptr,
                                 .margins = routed ? margins : nullptr,
                                 .done = done,
                                 .inner = b.inner,
                                 .shared_inner = b.shared_inner};
    mark("experts_up", layer);
    then(experts_up(experts, how));
    mark("experts_down", layer);
    then(experts_down(experts, how));
    if (routed && chosen != nullptr) chosen += static_cast<size_t>(args.routing_stride) * layer.experts.topk;
    if (routed && margins != nullptr) margins += args.routing_stride;
    cache.keys = static_cast<char*>(cache.keys) + args.layer_bytes;
    cache.values = static_cast<char*>(cache.values) + args.layer_bytes;
  }
  mark("head", {});
  then(head({.x = b.x,
             .gamma = model.final_gamma,
             .eps = model.eps,
             .weight = model.output,
             .vocabulary = model.vocabulary,
             .tokens = args.tokens,
             .logits = args.logits},
            how));
  mark("pick", {});
  then(pick(pick_args(args), how));
  return error;
}

PickArgs pick_args(const StepArgs& args) {
  return {.logits = args.logits,
          .vocabulary = args.model->vocabulary,
          .tokens = args.tokens,
          .targets = args.targets,
          .segments = args.buffers.segments,
          .tickets = args.buffers.counters + 1,
          .facts = args.facts,
          .advance = args.advance,
          .ids = args.ids,
          .positions = args.positions};
}

}  // namespace assay::cuda::fast
