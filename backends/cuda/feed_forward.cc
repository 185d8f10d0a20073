#include "backends/cuda/feed_forward.h"

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/routing.h"

namespace assay::cuda {
namespace {

class FeedForward {
 public:
  FeedForward(const model::ModelConfig& config, const Layer& layer, const Operators& operators, Workspace& w,
              cudaStream_t stream)
      : config_(config),
        layer_(layer),
        operators_(operators),
        w_(w),
        stream_(stream),
        tokens_(w.places.count),
        input_(w.normed.of(config.hidden_size)) {}

  void dense() {
    mlp(layer_.fc1, layer_.fc2, w_.projected.data());
    add(w_.projected.data(), w_.x.data(), int64_t{tokens_} * config_.hidden_size, stream_);
  }

  void mixture(size_t moe_layer) {
    const model::MoeConfig& moe = config_.moe;
    uint16_t* const chosen = w_.experts.data() + moe_layer * w_.slice * static_cast<size_t>(moe.topk);
    route(chosen, w_.margins.data() + moe_layer * w_.slice);
    const Groups groups = group_slots(
        {.chosen = chosen, .slots = tokens_ * moe.topk, .experts = moe.experts, .storage = w_.groups.data()}, stream_);
    experts(groups);
    AddExpertsArgs sum{.experts = w_.expert_out.data(), .x = w_.x.data()};
    sum.tokens = tokens_;
    sum.hidden = config_.hidden_size;
    sum.topk = moe.topk;
    if (layer_.shared_fc1.weight.data != nullptr) {
      mlp(layer_.shared_fc1, layer_.shared_fc2, w_.projected.data());
      sum.shared = w_.projected.data();
      if (layer_.shared_gate.data != nullptr) sum.gate = gates();
    }
    add_experts(sum, stream_);
  }

 private:
  // All tokens through one matrix.
  LinearArgs plain(const Linear& linear, const Inputs& x, float* y) const {
    LinearArgs args{.weight = linear.weight, .x = x, .y = y};
    args.y_stride = linear.weight.rows;
    args.tokens = tokens_;
    args.bias = linear.bias;
    return args;
  }

  ActivateArgs activation(const Linear& fc2, int tokens) const {
    ActivateArgs args{.activation = config_.activation, .fc1 = w_.fc1.data()};
    args.y = w_.inner.of(fc2.weight.cols);
    args.tokens = tokens;
    args.width = fc2.weight.cols;
    return args;
  }

  void mlp(const Linear& fc1, const Linear& fc2, float* y) {
    operators_.linear(plain(fc1, input_, w_.fc1.data()), stream_);
    const ActivateArgs inner = activation(fc2, tokens_);
    activate(inner, stream_);
    operators_.linear(plain(fc2, inner.y, y), stream_);
  }

  void route(uint16_t* chosen, float* margins) {
    LinearArgs logits = plain(layer_.router, input_, w_.router_logits.data());
    logits.rounded = input_.bf16 && !config_.moe.router_fp32;
    operators_.linear(logits, stream_);
    ChooseArgs choose{.moe = &config_.moe, .logits = w_.router_logits.data(), .bias = layer_.expert_bias};
    choose.tokens = tokens_;
    choose.experts = chosen;
    choose.factors = w_.factors.data();
    choose.margins = margins;
    choose_experts(choose, stream_);
  }

  // Every slot through its expert, to w.expert_out.
  void experts(const Groups& groups) {
    const int slots = tokens_ * config_.moe.topk;
    LinearArgs into = plain(layer_.expert_fc1, input_, w_.fc1.data());
    into.x_divisor = config_.moe.topk;
    into.tokens = slots;
    into.groups = &groups;
    operators_.linear(into, stream_);
    ActivateArgs inner = activation(layer_.expert_fc2, slots);
    inner.factor = w_.factors.data();
    activate(inner, stream_);
    LinearArgs out = plain(layer_.expert_fc2, inner.y, w_.expert_out.data());
    out.tokens = slots;
    out.groups = &groups;
    out.bias_factor = w_.factors.data();
    operators_.linear(out, stream_);
  }

  // Logits of the shared expert's gate, one a token.
  const float* gates() {
    operators_.linear(plain({layer_.shared_gate, nullptr}, input_, w_.gates.data()), stream_);
    return w_.gates.data();
  }

  const model::ModelConfig& config_;
  const Layer& layer_;
  const Operators& operators_;
  Workspace& w_;
  cudaStream_t stream_;
  int tokens_;
  Inputs input_;
};

}  // namespace

void feed_forward(const model::ModelConfig& config, const Layer& layer, size_t moe_layer, const Operators& operators,
                  Workspace& w, cudaStream_t stream) {
  FeedForward step(config, layer, operators, w, stream);
  if (layer.router.weight.data == nullptr) {
    step.dense();
  } else {
    step.mixture(moe_layer);
  }
}

}  // namespace assay::cuda
