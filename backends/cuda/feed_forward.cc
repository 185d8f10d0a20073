#include "backends/cuda/feed_forward.h"

#include "backends/cuda/kernels/routing.h"

namespace assay::cuda {
namespace {

class FeedForward {
 public:
  FeedForward(const model::ModelConfig& config, const FeedForwardStep& step, const Operators& operators, Workspace& w,
              cudaStream_t stream)
      : config_(config),
        step_(step),
        layer_(step.layer),
        operators_(operators),
        w_(w),
        stream_(stream),
        tokens_(w.places.count),
        input_(w.normed.of(config.hidden_size)) {}

  void dense() {
    w_.mark("norm", row_bytes());
    normalise(norm_of(config_, layer_.mlp_norm, w_), stream_);
    MlpJob job{into(layer_.fc1, layer_.fc2, w_.inner), {}, {}};
    job.second = plain(layer_.fc2, job.first.activate.y, w_.x.data());
    job.second.onto = true;
    mark("MLP", {&layer_.fc1, &layer_.fc2}, {});
    operators_.mlps({&job, 1}, stream_);
    if (step_.next == nullptr) return;
    w_.mark("norm", row_bytes());
    normalise(norm_of(config_, *step_.next, w_), stream_);
  }

  void mixture() {
    const model::MoeConfig& moe = config_.moe;
    uint16_t* const chosen = w_.experts.data() + step_.moe_layer * w_.slice * static_cast<size_t>(moe.topk);
    w_.mark("norm, router and choice", static_cast<double>(layer_.router.weight.bytes()) + row_bytes());
    choose(chosen, w_.margins.data() + step_.moe_layer * w_.slice);
    w_.mark("grouping", 4.0 * tokens_ * moe.topk);
    const Groups groups = group_slots(
        {.chosen = chosen, .slots = tokens_ * moe.topk, .experts = moe.experts, .storage = w_.groups.data()}, stream_);
    MlpJob jobs[2] = {experts(groups), {}};
    const bool shared = layer_.shared_fc1.weight.data != nullptr;
    if (shared) {
      jobs[1].first = into(layer_.shared_fc1, layer_.shared_fc2, w_.shared_inner);
      jobs[1].second = plain(layer_.shared_fc2, jobs[1].first.activate.y, w_.projected.data());
    }
    mark("experts", {&layer_.shared_fc1, &layer_.shared_fc2}, {&layer_.expert_fc1, &layer_.expert_fc2});
    operators_.mlps({jobs, shared ? 2u : 1u}, stream_);
    AddExpertsArgs sum{.experts = w_.expert_out.data(), .x = w_.x.data()};
    sum.tokens = tokens_;
    sum.hidden = config_.hidden_size;
    sum.topk = moe.topk;
    if (shared) {
      sum.shared = w_.projected.data();
      if (layer_.shared_gate.data != nullptr) sum.gate = gates();
    }
    w_.mark("sum of experts and norm", (moe.topk + 3) * 4.0 * tokens_ * config_.hidden_size);
    if (step_.next == nullptr) return add_experts(sum, nullptr, stream_);
    const NormArgs next = norm_of(config_, *step_.next, w_);
    add_experts(sum, &next, stream_);
  }

 private:
  // Bytes of the residual read and of a norm's result written.
  double row_bytes() const { return (input_.bf16 ? 6.0 : 8.0) * tokens_ * config_.hidden_size; }

  // Layers `all` for every token and `each` for the chosen experts: weights, inputs and results once.
  void mark(const char* name, std::initializer_list<const Linear*> all,
            std::initializer_list<const Linear*> each) const {
    if (w_.clock == nullptr) return;
    double bytes = 0;
    double flops = 0;
    const auto add = [&](const Matrix& m, double matrices, double rows) {
      const double number = input_.bf16 ? 2 : 4;
      bytes += matrices * static_cast<double>(m.bytes()) + rows * number * (m.cols + m.rows);
      flops += 2 * rows * m.rows * m.cols;
    };
    const model::MoeConfig& moe = config_.moe;
    for (const Linear* layer : all) {
      if (layer->weight.data != nullptr) add(layer->weight, 1, tokens_);
    }
    for (const Linear* layer : each) {
      add(layer->weight, experts_chosen(moe.experts, moe.topk, tokens_), static_cast<double>(tokens_) * moe.topk);
    }
    w_.mark(name, bytes, flops);
  }

  // All tokens through one matrix.
  LinearArgs plain(const Linear& linear, const Inputs& x, float* y) const {
    LinearArgs args{.weight = linear.weight, .x = x, .y = y};
    args.y_stride = linear.weight.rows;
    args.tokens = tokens_;
    args.bias = linear.bias;
    return args;
  }

  // All tokens through the first matrix of an MLP and its activation, to `inner`.
  LinearJob into(const Linear& fc1, const Linear& fc2, const InputRows& inner) const {
    LinearJob job{plain(fc1, input_, w_.fc1.data()), {}};
    job.activate.activation = config_.activation;
    job.activate.fc1 = w_.fc1.data();
    job.activate.y = inner.of(fc2.weight.cols);
    job.activate.tokens = tokens_;
    job.activate.width = fc2.weight.cols;
    return job;
  }

  void choose(uint16_t* chosen, float* margins) {
    normalise(norm_of(config_, layer_.mlp_norm, w_), stream_);
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
  MlpJob experts(const Groups& groups) const {
    const int slots = tokens_ * config_.moe.topk;
    MlpJob job{into(layer_.expert_fc1, layer_.expert_fc2, w_.inner), {}, w_.sorted.of(config_.hidden_size)};
    job.first.linear.x_divisor = config_.moe.topk;
    job.first.linear.tokens = job.first.activate.tokens = slots;
    job.first.linear.groups = &groups;
    job.first.activate.factor = w_.factors.data();
    job.second = plain(layer_.expert_fc2, job.first.activate.y, w_.expert_out.data());
    job.second.tokens = slots;
    job.second.groups = &groups;
    job.second.bias_factor = w_.factors.data();
    return job;
  }

  // Logits of the shared expert's gate, one a token.
  const float* gates() {
    operators_.linear(plain({layer_.shared_gate, nullptr}, input_, w_.gates.data()), stream_);
    return w_.gates.data();
  }

  const model::ModelConfig& config_;
  const FeedForwardStep& step_;
  const Layer& layer_;
  const Operators& operators_;
  Workspace& w_;
  cudaStream_t stream_;
  int tokens_;
  Inputs input_;
};

}  // namespace

NormArgs norm_of(const model::ModelConfig& config, const NormWeights& weights, const Workspace& w) {
  NormArgs args{.x = w.x.data(), .gamma = weights.gamma, .beta = weights.beta};
  args.y = w.normed.of(config.hidden_size);
  args.tokens = w.places.count;
  args.width = config.hidden_size;
  args.epsilon = static_cast<float>(config.norm_epsilon);
  args.centred = config.norm == model::Norm::kLayerNorm;
  return args;
}

void feed_forward(const model::ModelConfig& config, const FeedForwardStep& step, const Operators& operators,
                  Workspace& w, cudaStream_t stream) {
  FeedForward layer(config, step, operators, w, stream);
  if (step.layer.router.weight.data == nullptr) {
    layer.dense();
  } else {
    layer.mixture();
  }
}

}  // namespace assay::cuda
