#include "backends/cpu/feed_forward.h"

#include <algorithm>

#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/routing.h"

namespace assay::cpu {
namespace {

// One MLP and the tokens that go through it, in ascending order.
struct Item {
  const Linear* fc1;
  const Linear* fc2;
  bool shared = false;
  std::vector<size_t> tokens;
  std::vector<float> factors;     // of the router, 1 where there is none
  std::vector<const float*> in;   // (hidden)
  std::vector<float*> inner;      // (width)
  const float* packed = nullptr;  // in, then inner, as the kernels pack them; null for few tokens

  size_t width() const { return fc2->weight.cols; }
};

class FeedForward {
 public:
  FeedForward(const model::ModelConfig& config, const Layer& layer, Executor& executor, Workspace& w)
      : config_(config),
        layer_(layer),
        executor_(executor),
        w_(w),
        bf16_(config.arithmetic == model::Arithmetic::kBf16),
        tokens_(w.tokens.size()),
        hidden_(static_cast<size_t>(config.hidden_size)) {}

  void run() {
    const bool mixture = layer_.router.weight.data != nullptr;
    if (mixture) {
      route();
      add_experts();
    } else {
      Item item{&layer_.fc1, &layer_.fc2, false, {}, {}, {}, {}, nullptr};
      for (size_t t = 0; t < tokens_; ++t) add_token(item, t, 1.0f);
      items_.push_back(std::move(item));
    }
    place_inner();
    size_t work = 0;
    for (const Item& item : items_) work += item.width() * hidden_ * item.tokens.size();
    w_.part_scratch.resize(executor_.most_parts() * 2 * tokens_ * kStrip);
    pack([](const Item& item) { return item.in.data(); }, [this](const Item&) { return hidden_; });
    executor_.parts(work, [&](size_t part, size_t parts) { into(part, parts); });
    pack([](const Item& item) { return item.inner.data(); }, [](const Item& item) { return item.width(); });
    executor_.parts(work, [&](size_t part, size_t parts) { out_of(part, parts, mixture); });
  }

 private:
  static Gate gate(model::Activation activation) {
    switch (activation) {
      case model::Activation::kSwiglu:
        return Gate::kSwiglu;
      case model::Activation::kSquaredRelu:
        return Gate::kSquaredRelu;
      case model::Activation::kGeluErf:
        return Gate::kGeluErf;
      default:
        return Gate::kGeluTanh;
    }
  }

  void add_token(Item& item, size_t t, float factor) const {
    item.tokens.push_back(t);
    item.factors.push_back(factor);
    item.in.push_back(w_.normed[t]);
  }

  void route() {
    const auto topk = static_cast<size_t>(config_.moe.topk);
    const auto experts = static_cast<size_t>(config_.moe.experts);
    w_.router_logits.resize(tokens_, experts);
    w_.experts.resize(tokens_ * topk);
    w_.factors.resize(tokens_ * topk);
    w_.margins.resize(tokens_);
    executor_.linear(layer_.router, w_.normed.get(), w_.router_logits.get(), tokens_, [](size_t, size_t) {});
    executor_.each(tokens_, experts * 64, [&](size_t t) {
      float* logits = w_.router_logits[t];
      if (bf16_ && !config_.moe.router_fp32) executor_.kernels().round(logits, experts);
      std::vector<float> scratch(4 * experts);
      w_.margins[t] = arithmetic::choose_experts(config_.moe, logits, layer_.expert_bias, scratch.data(),
                                                 &w_.experts[t * topk], &w_.factors[t * topk]);
    });
  }

  // Items of the experts with tokens, ascending, then the shared expert.
  void add_experts() {
    const auto topk = static_cast<size_t>(config_.moe.topk);
    std::vector<std::vector<size_t>> slots(static_cast<size_t>(config_.moe.experts));
    for (size_t i = 0; i < w_.experts.size(); ++i) slots[w_.experts[i]].push_back(i);
    for (size_t e = 0; e < slots.size(); ++e) {
      if (slots[e].empty()) continue;
      Item item{&layer_.expert_fc1[e], &layer_.expert_fc2[e], false, {}, {}, {}, {}, nullptr};
      for (const size_t i : slots[e]) add_token(item, i / topk, w_.factors[i]);
      items_.push_back(std::move(item));
    }
    if (layer_.shared_fc1.weight.data == nullptr) return;
    Item item{&layer_.shared_fc1, &layer_.shared_fc2, true, {}, {}, {}, {}, nullptr};
    for (size_t t = 0; t < tokens_; ++t) add_token(item, t, 1.0f);
    items_.push_back(std::move(item));
    if (layer_.shared_gate.data == nullptr) return;
    w_.gates.resize(tokens_, 1);
    executor_.multiply(layer_.shared_gate, {0, 1}, {w_.normed.get(), tokens_, nullptr}, w_.gates.get(), 0);
    for (size_t t = 0; t < tokens_; ++t) *w_.gates[t] = arithmetic::sigmoid<arithmetic::Single>(*w_.gates[t]);
  }

  void place_inner() {
    size_t rows = 0;
    size_t width = 0;
    for (const Item& item : items_) {
      rows += item.tokens.size();
      width = std::max(width, item.width());
    }
    w_.inner.resize(rows, width);
    size_t row = 0;
    for (Item& item : items_) {
      for (size_t i = 0; i < item.tokens.size(); ++i) item.inner.push_back(w_.inner[row++]);
    }
    w_.totals.resize(tokens_, hidden_);
  }

  // Addresses of `count` scratch vectors of kStrip floats; half 0 or 1 of the part's scratch.
  std::vector<float*> strips(size_t part, size_t half, size_t count) const {
    std::vector<float*> rows(count);
    for (size_t i = 0; i < count; ++i) rows[i] = &w_.part_scratch[((part * 2 + half) * tokens_ + i) * kStrip];
    return rows;
  }

  // Packs what inputs(item) holds, item by item: cols(item) floats a token.
  template <class Source, class Columns>
  void pack(const Source& inputs, const Columns& cols) {
    size_t floats = 0;
    for (const Item& item : items_) floats += Executor::packed_floats(item.tokens.size(), cols(item));
    w_.packed.resize(std::max(w_.packed.size(), floats));
    float* place = w_.packed.data();
    for (Item& item : items_) {
      const size_t taken = Executor::packed_floats(item.tokens.size(), cols(item));
      item.packed = taken == 0 ? nullptr : place;
      if (taken > 0) executor_.pack(inputs(item), item.tokens.size(), cols(item), place);
      place += taken;
    }
  }

  // fc1 and activation of this part's rows of every item.
  void into(size_t part, size_t parts) const {
    const Kernels& k = executor_.kernels();
    const bool gated = config_.activation == model::Activation::kSwiglu;
    for (const Item& item : items_) {
      const size_t width = item.width();
      const size_t count = item.tokens.size();
      const std::vector<float*> first = strips(part, 0, count);
      const std::vector<float*> up = strips(part, 1, count);
      const Range mine = part_of(width, Executor::kGrain, part, parts);
      for (size_t r = mine.begin; r < mine.end; r += kStrip) {
        const size_t end = std::min(mine.end, r + kStrip);
        const Inputs in{item.in.data(), count, item.packed};
        multiply(*item.fc1, {r, end}, in, first);
        if (gated) multiply(*item.fc1, {width + r, width + end}, in, up);
        for (size_t i = 0; i < count; ++i) {
          k.activate({gate(config_.activation), first[i], up[i], item.inner[i] + r, end - r, item.factors[i], bf16_});
        }
      }
    }
  }

  void multiply(const Linear& linear, Range rows, const Inputs& in, const std::vector<float*>& out) const {
    executor_.multiply(linear.weight, rows, in, out.data(), rows.begin);
    for (size_t i = 0; i < in.tokens && linear.bias != nullptr; ++i) {
      executor_.kernels().add(linear.bias + rows.begin, out[i], rows.end - rows.begin);
    }
  }

  // fc2 of this part's rows; the items' results are added in ascending order, so each element has one writer.
  void out_of(size_t part, size_t parts, bool mixture) const {
    const Range mine = part_of(hidden_, Executor::kGrain, part, parts);
    for (size_t r = mine.begin; r < mine.end; r += kStrip) {
      const Range rows{r, std::min(mine.end, r + kStrip)};
      const size_t count = rows.end - rows.begin;
      for (size_t t = 0; t < tokens_ && mixture; ++t) std::fill_n(w_.totals[t] + r, count, 0.0f);
      for (const Item& item : items_) add_rows(item, part, rows, mixture);
      for (size_t t = 0; t < tokens_ && mixture; ++t) executor_.kernels().add(w_.totals[t] + r, w_.x[t] + r, count);
    }
  }

  void add_rows(const Item& item, size_t part, Range rows, bool mixture) const {
    const Kernels& k = executor_.kernels();
    const size_t count = rows.end - rows.begin;
    const std::vector<float*> out = strips(part, 0, item.tokens.size());
    executor_.multiply(item.fc2->weight, rows, {item.inner.data(), item.tokens.size(), item.packed}, out.data(),
                       rows.begin);
    for (size_t i = 0; i < item.tokens.size(); ++i) {
      const size_t t = item.tokens[i];
      if (item.fc2->bias != nullptr) k.add_scaled(item.fc2->bias + rows.begin, item.factors[i], out[i], count);
      float* to = (mixture ? w_.totals[t] : w_.x[t]) + rows.begin;
      if (item.shared && layer_.shared_gate.data != nullptr) {
        k.add_scaled(out[i], *w_.gates[t], to, count);
      } else {
        k.add(out[i], to, count);
      }
    }
  }

  const model::ModelConfig& config_;
  const Layer& layer_;
  Executor& executor_;
  Workspace& w_;
  bool bf16_;
  size_t tokens_;
  size_t hidden_;
  std::vector<Item> items_;
};

}  // namespace

void feed_forward(const model::ModelConfig& config, const Layer& layer, Executor& executor, Workspace& w) {
  FeedForward(config, layer, executor, w).run();
}

}  // namespace assay::cpu
