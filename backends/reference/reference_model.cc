#include "backends/reference/reference_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/reference/arithmetic/dot.h"
#include "backends/reference/arithmetic/elementary.h"
#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/arithmetic/precise.h"
#include "backends/reference/arithmetic/routing.h"
#include "backends/reference/arithmetic/vocabulary.h"
#include "backends/reference/operators.h"

namespace assay::reference {
namespace {

using backend::Cache;
using model::ModelConfig;

struct ReferenceCache : Cache {
  std::vector<float> keys;    // (layers, blocks * block_size, groups, channels), rotated, rounded
  std::vector<float> values;  // same
};

// Where one token of one run is.
struct Place {
  const assay_run* run;
  uint32_t position;
};

class ReferenceModel : public backend::Model {
 public:
  ReferenceModel(const ModelConfig& config, Weights weights, std::vector<std::string> notes)
      : config_(config),
        weights_(std::move(weights)),
        notes_(std::move(notes)),
        bf16_(config.arithmetic == model::Arithmetic::kBf16) {
    const auto rotated = static_cast<size_t>(config.kv_channels * config.rotary_percent);
    if (config.positions == model::Positions::kRope) {
      frequencies_ = arithmetic::inverse_frequencies(config.rotary_base, rotated);
    }
  }

  const ModelConfig& config() const override { return config_; }
  uint64_t weight_bytes() const override { return weights_.bytes; }
  const std::string& device() const override { return device_; }
  const std::vector<std::string>& notes() const override { return notes_; }

  Result<std::unique_ptr<Cache>> make_cache(const assay_cache_spec& spec) override {
    auto cache = std::make_unique<ReferenceCache>();
    const size_t tokens = size_t{spec.block_size} * spec.block_count;
    cache->keys.resize(static_cast<size_t>(config_.num_layers) * tokens * kv_width());
    cache->values.resize(cache->keys.size());
    return std::unique_ptr<Cache>(std::move(cache));
  }

  Status forward(Cache& cache, std::span<const assay_run> runs, float* const* routing_margins) override {
    for (size_t r = 0; r < runs.size(); ++r) {
      float* margins = routing_margins != nullptr ? routing_margins[r] : nullptr;
      for (uint32_t i = 0; i < runs[r].count; ++i) token(static_cast<ReferenceCache&>(cache), runs[r], i, margins);
    }
    return {};
  }

 private:
  size_t kv_width() const { return static_cast<size_t>(config_.num_query_groups * config_.kv_channels); }

  // margins: (count, moe_layers) of the run, or null.
  void token(ReferenceCache& cache, const assay_run& run, uint32_t index, float* margins) {
    const Place place{&run, run.start + index};
    std::vector<float> x = embed(run.ids[index], place.position);
    size_t moe_layer = 0;
    for (size_t l = 0; l < weights_.layers.size(); ++l) {
      const Layer& layer = weights_.layers[l];
      add(x, attention(cache, l, normalise(config_, layer.attention_norm, x, bf16_), place));
      const std::vector<float> input = normalise(config_, layer.mlp_norm, x, bf16_);
      if (layer.router.weight.empty()) {
        add(x, mlp(layer.fc1, layer.fc2, input, 1.0f));
      } else {
        float* margin = margins != nullptr ? margins + index * moe_layers() + moe_layer : nullptr;
        add(x, mixture(layer, input, routing_row(run, index, moe_layer), margin));
        ++moe_layer;
      }
    }
    if (index + run.output_rows >= run.count) output(x, run, index + run.output_rows - run.count);
  }

  static void add(std::vector<float>& x, const std::vector<float>& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] + y[i];
  }

  std::vector<float> embed(int32_t id, uint32_t position) const {
    const auto hidden = static_cast<size_t>(config_.hidden_size);
    const float* row = &weights_.word_embeddings[static_cast<size_t>(id) * hidden];
    std::vector<float> x(row, row + hidden);
    if (!weights_.position_embeddings.empty()) {
      const float* where = &weights_.position_embeddings[position * hidden];
      for (size_t i = 0; i < hidden; ++i) x[i] = x[i] + where[i];
    }
    return x;
  }

  // Norm (where the model has it), rotation and rounding of one query or key head.
  std::vector<float> prepare_head(const NormWeights& norm, std::span<const float> head, uint32_t position) const {
    std::vector<float> y =
        norm.gamma.empty() ? std::vector<float>(head.begin(), head.end()) : normalise(config_, norm, head, false);
    if (!frequencies_.empty()) {
      std::vector<float> cosine(frequencies_.size());
      std::vector<float> sine(frequencies_.size());
      arithmetic::rotary_row(frequencies_, position, cosine.data(), sine.data());
      rotate(y, cosine, sine, config_.rotary_interleaved);
    }
    round(y);
    return y;
  }

  void round(std::vector<float>& y) const {
    if (!bf16_) return;
    for (float& v : y) v = arithmetic::round_bf16(v);
  }

  size_t slot(const ReferenceCache& cache, size_t layer, const Place& place, size_t position) const {
    const auto block = static_cast<size_t>(place.run->blocks[position / cache.block_size]);
    const size_t token = block * cache.block_size + position % cache.block_size;
    return (layer * cache.block_size * cache.block_count + token) * kv_width();
  }

  std::vector<float> attention(ReferenceCache& cache, size_t l, const std::vector<float>& input, const Place& place) {
    const Layer& layer = weights_.layers[l];
    const auto channels = static_cast<size_t>(config_.kv_channels);
    const auto groups = static_cast<size_t>(config_.num_query_groups);
    const size_t per_group = static_cast<size_t>(config_.num_attention_heads) / groups;
    const float scale = 1.0f / std::sqrt(static_cast<float>(channels));
    const std::vector<float> qkv = multiply(layer.qkv, input);
    std::vector<float> result;
    for (size_t g = 0; g < groups; ++g) {
      const std::span<const float> rows(&qkv[g * (per_group + 2) * channels], (per_group + 2) * channels);
      const std::vector<float> k =
          prepare_head(layer.k_norm, rows.subspan(per_group * channels, channels), place.position);
      const auto v = rows.subspan((per_group + 1) * channels, channels);
      const size_t own = slot(cache, l, place, place.position) + g * channels;
      std::copy(k.begin(), k.end(), cache.keys.begin() + static_cast<ptrdiff_t>(own));
      for (size_t d = 0; d < channels; ++d) cache.values[own + d] = bf16_ ? arithmetic::round_bf16(v[d]) : v[d];
      for (size_t h = 0; h < per_group; ++h) {
        const auto q = prepare_head(layer.q_norm, rows.subspan(h * channels, channels), place.position);
        const auto at = [&](const std::vector<float>& store) {
          return [&, l, g](size_t position) { return &store[slot(cache, l, place, position) + g * channels]; };
        };
        const auto head = attend(q, place.position + 1, at(cache.keys), at(cache.values), scale, bf16_);
        result.insert(result.end(), head.begin(), head.end());
      }
    }
    return multiply(layer.proj, result);
  }

  std::vector<float> mlp(const Linear& fc1, const Linear& fc2, const std::vector<float>& input, float factor) const {
    const std::vector<float> inner = activate(config_.activation, multiply(fc1, input), factor, bf16_);
    std::vector<float> y(fc2.rows);
    for (size_t r = 0; r < fc2.rows; ++r) {
      y[r] = arithmetic::dot(&fc2.weight[r * fc2.cols], inner.data(), fc2.cols);
      if (!fc2.bias.empty()) y[r] = y[r] + fc2.bias[r] * factor;
    }
    return y;
  }

  size_t moe_layers() const {
    return static_cast<size_t>(std::count(config_.moe_layers.begin(), config_.moe_layers.end(), true));
  }

  uint16_t* routing_row(const assay_run& run, uint32_t index, size_t moe_layer) const {
    if (run.output.routing == nullptr) return nullptr;
    return run.output.routing + (index * moe_layers() + moe_layer) * static_cast<size_t>(config_.moe.topk);
  }

  // Writes its choices to `routing` (topk) and their margin to `margin` (1) where these are not null.
  std::vector<float> mixture(const Layer& layer, const std::vector<float>& input, uint16_t* routing,
                             float* margin) const {
    const auto topk = static_cast<size_t>(config_.moe.topk);
    std::vector<float> logits = multiply(layer.router, input);
    if (!config_.moe.router_fp32) round(logits);
    std::vector<uint16_t> experts(topk);
    std::vector<float> factors(topk);
    std::vector<float> scratch(4 * logits.size());
    const float gap = arithmetic::choose_experts(config_.moe, logits.data(), layer.expert_bias, scratch.data(),
                                                 experts.data(), factors.data());
    std::vector<float> total(input.size(), 0.0f);
    for (size_t k = 0; k < topk; ++k) {
      add(total, mlp(layer.expert_fc1[experts[k]], layer.expert_fc2[experts[k]], input, factors[k]));
    }
    if (!layer.shared_fc1.weight.empty()) {
      std::vector<float> shared = mlp(layer.shared_fc1, layer.shared_fc2, input, 1.0f);
      if (!layer.shared_gate.empty()) {
        const float gate = arithmetic::sigmoid<arithmetic::Single>(
            arithmetic::dot(layer.shared_gate.data(), input.data(), input.size()));
        for (float& v : shared) v = v * gate;
      }
      add(total, shared);
    }
    if (routing != nullptr) std::copy(experts.begin(), experts.end(), routing);
    if (margin != nullptr) *margin = gap;
    return total;
  }

  void output(const std::vector<float>& x, const assay_run& run, uint32_t row) const {
    std::vector<float> logits = multiply(weights_.output, normalise(config_, weights_.final_norm, x, bf16_));
    round(logits);
    std::vector<arithmetic::Segment> segments;
    std::vector<float> scratch(arithmetic::kSegment);
    for (size_t begin = 0; begin < logits.size(); begin += arithmetic::kSegment) {
      const size_t length = std::min(arithmetic::kSegment, logits.size() - begin);
      segments.push_back(arithmetic::scan_segment({&logits[begin], length}, begin, scratch.data()));
    }
    const arithmetic::RowSummary summary = arithmetic::summarise(segments);
    arithmetic::write_row(logits, summary, run, row);
    if (row + 1 == run.output_rows && run.output.sampled != nullptr) arithmetic::write_sample(logits, summary, run);
  }

  ModelConfig config_;
  Weights weights_;
  std::vector<std::string> notes_;
  bool bf16_;
  std::vector<float> frequencies_;  // RoPE: (rotated / 2)
  std::string device_ = "reference, one thread";
};

}  // namespace

Result<std::unique_ptr<backend::Model>> open_reference(const ModelConfig& config, std::string_view checkpoint,
                                                       std::string_view options) {
  Result<backend::Options> parsed = backend::Options::parse(options, {});
  if (!parsed) return parsed.status();
  Result<std::unique_ptr<model::Checkpoint>> opened = model::Checkpoint::open(std::string(checkpoint));
  if (!opened) return opened.status();
  Result<Weights> weights = load_weights(**opened, config);
  if (!weights) return weights.status();
  auto notes = backend::unused_note((*opened)->contents().path, weights->unused);
  return std::unique_ptr<backend::Model>(
      std::make_unique<ReferenceModel>(config, std::move(*weights), std::move(notes)));
}

}  // namespace assay::reference
