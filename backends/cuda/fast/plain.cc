#include "backends/cuda/fast/plain.h"

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/linear.h"
#include "backends/cuda/kernels/routing.h"
#include "backends/cuda/kernels/vocabulary.h"
#include "backends/cuda/runtime/buffer.h"

namespace assay::cuda::fast {
namespace {

class PlainStep {
 public:
  PlainStep(const StepArgs& args, cudaStream_t stream)
      : args_(args), model_(*args.model), stream_(stream), tokens_(static_cast<size_t>(args.tokens)) {
    const StepShape shape = step_shape(model_, args.tokens, 1);
    const auto widest = static_cast<size_t>(shape.inner) + static_cast<size_t>(shape.shared_width);
    x_ = DeviceBuffer<float>(tokens_ * kHidden);
    normed_ = DeviceBuffer<uint16_t>(tokens_ * kHidden);
    qkv_ = DeviceBuffer<float>(tokens_ * 3 * kHidden);
    projected_ = DeviceBuffer<float>(tokens_ * kHidden);
    fc1_ = DeviceBuffer<float>(tokens_ * 2 * widest);
    inner_ = DeviceBuffer<uint16_t>(tokens_ * widest);
    out_ = DeviceBuffer<float>(tokens_ * kMostTopk * kHidden);
    logits_ = DeviceBuffer<float>(tokens_ * kMostExperts);
    factors_ = DeviceBuffer<float>(tokens_ * kMostTopk);
    margins_ = DeviceBuffer<float>(tokens_);
    chosen_ = DeviceBuffer<uint16_t>(tokens_ * kMostTopk);
    groups_ = DeviceBuffer<int32_t>(static_cast<size_t>(group_ints(args.tokens * kMostTopk, kMostExperts)));
    segments_ = DeviceBuffer<float>(segment_floats(args.tokens, model_.vocabulary));
    targets_ = assay::cuda::upload(std::vector<int32_t>(tokens_, -1));
  }

  void run() {
    embed({.words = matrix(model_.embeddings, model_.vocabulary, kHidden),
           .ids = args_.ids,
           .x = x_.data(),
           .tokens = args_.tokens},
          stream_);
    CacheView cache = args_.cache;
    size_t routed = 0;
    for (const LayerWeights& layer : model_.layers) {
      attention(layer, cache);
      norm(layer.mlp_gamma);
      if (layer.experts.experts > 0) {
        mixture(layer.experts, routed++);
      } else {
        mlp(layer.experts);
        add(projected_.data(), x_.data(), static_cast<int64_t>(tokens_) * kHidden, stream_);
      }
      cache.keys = static_cast<char*>(cache.keys) + args_.layer_bytes;
      cache.values = static_cast<char*>(cache.values) + args_.layer_bytes;
    }
    norm(model_.final_gamma);
    linear_layer(matrix(model_.output, model_.vocabulary, kHidden), normed_.data(), args_.logits, true);
    scan_rows({.logits = args_.logits,
               .targets = args_.targets != nullptr ? args_.targets : targets_.data(),
               .facts = args_.facts,
               .segments = segments_.data(),
               .rows = args_.tokens,
               .vocab = model_.vocabulary},
              stream_);
    check(cudaStreamSynchronize(stream_), "plain_step");
  }

 private:
  static Matrix matrix(const void* data, int rows, int cols, bool gated = false) {
    return {.data = data, .rows = rows, .cols = cols, .number = Number::kBfloat16, .tiled = true, .gated = gated};
  }
  static Inputs inputs(void* data, int width) { return {.data = data, .stride = width, .bf16 = true}; }

  void norm(const float* gamma) {
    normalise({.x = x_.data(),
               .gamma = gamma,
               .y = inputs(normed_.data(), kHidden),
               .tokens = args_.tokens,
               .width = kHidden,
               .epsilon = model_.eps},
              stream_);
  }

  void linear_layer(const Matrix& weight, void* x, float* y, bool rounded = false) {
    linear({.weight = weight,
            .x = inputs(x, weight.cols),
            .y = y,
            .y_stride = weight.rows,
            .tokens = args_.tokens,
            .rounded = rounded},
           stream_);
  }

  void attention(const LayerWeights& layer, const CacheView& cache) {
    const int rows = model_.groups * (model_.heads_per_group + 2) * kHeadSize;
    norm(layer.attention_gamma);
    linear_layer(matrix(layer.qkv, rows, kHidden), normed_.data(), qkv_.data());
    plain_attention({.qkv = qkv_.data(),
                     .rotary = model_.rotary,
                     .positions = args_.positions,
                     .cache = cache,
                     .groups = model_.groups,
                     .heads_per_group = model_.heads_per_group,
                     .tokens = args_.tokens,
                     .splits = args_.splits,
                     .y = normed_.data()},
                    stream_);
    linear_layer(matrix(layer.projection, kHidden, kHidden), normed_.data(), projected_.data());
    add(projected_.data(), x_.data(), static_cast<int64_t>(tokens_) * kHidden, stream_);
  }

  // The shared expert, or the MLP of a layer without experts, to projected_.
  void mlp(const ExpertWeights& w) {
    linear_layer(matrix(w.shared_fc1, 2 * w.shared_width, kHidden, true), normed_.data(), fc1_.data());
    activate({.fc1 = fc1_.data(),
              .y = inputs(inner_.data(), w.shared_width),
              .tokens = args_.tokens,
              .width = w.shared_width},
             stream_);
    linear_layer(matrix(w.shared_fc2, kHidden, w.shared_width), inner_.data(), projected_.data());
  }

  void mixture(const ExpertWeights& w, size_t index) {
    model::MoeConfig moe;
    moe.experts = w.experts;
    moe.topk = w.topk;
    moe.score = model::RouterScore::kSigmoid;
    moe.scaling_factor = w.scaling_factor;
    const auto stride = static_cast<size_t>(args_.routing_stride);
    const int slots = args_.tokens * w.topk;
    linear_layer(matrix(w.router, w.experts, kHidden), normed_.data(), logits_.data(), model_.rounded_router);
    uint16_t* const chosen =
        args_.chosen != nullptr ? args_.chosen + index * stride * static_cast<size_t>(w.topk) : chosen_.data();
    choose_experts({.moe = &moe,
                    .logits = logits_.data(),
                    .bias = w.bias,
                    .tokens = args_.tokens,
                    .experts = chosen,
                    .factors = factors_.data(),
                    .margins = args_.margins != nullptr ? args_.margins + index * stride : margins_.data()},
                   stream_);
    const Groups groups =
        group_slots({.chosen = chosen, .slots = slots, .experts = w.experts, .storage = groups_.data()}, stream_);
    linear({.weight = matrix(w.fc1, 2 * w.width, kHidden, true),
            .x = inputs(normed_.data(), kHidden),
            .x_divisor = w.topk,
            .y = fc1_.data(),
            .y_stride = 2 * w.width,
            .tokens = slots,
            .groups = &groups},
           stream_);
    activate({.fc1 = fc1_.data(),
              .factor = factors_.data(),
              .y = inputs(inner_.data(), w.width),
              .tokens = slots,
              .width = w.width},
             stream_);
    linear({.weight = matrix(w.fc2, kHidden, w.width),
            .x = inputs(inner_.data(), w.width),
            .y = out_.data(),
            .y_stride = kHidden,
            .tokens = slots,
            .groups = &groups},
           stream_);
    mlp(w);
    add_experts({.experts = out_.data(),
                 .shared = projected_.data(),
                 .x = x_.data(),
                 .tokens = args_.tokens,
                 .hidden = kHidden,
                 .topk = w.topk},
                nullptr, stream_);
  }

  const StepArgs& args_;
  const ModelWeights& model_;
  cudaStream_t stream_;
  size_t tokens_;
  DeviceBuffer<float> x_, qkv_, projected_, fc1_, out_, logits_, factors_, margins_, segments_;
  DeviceBuffer<uint16_t> normed_, inner_, chosen_;
  DeviceBuffer<int32_t> groups_, targets_;
};

}  // namespace

void plain_step(const StepArgs& args, cudaStream_t stream) { PlainStep(args, stream).run(); }

}  // namespace assay::cuda::fast
