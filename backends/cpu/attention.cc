#include "backends/cpu/attention.h"

#include <cmath>
#include <cstring>

#include "backends/reference/arithmetic/attend.h"
#include "backends/reference/arithmetic/precise.h"

namespace assay::cpu {
namespace {

using arithmetic::kSplit;

class SliceAttention {
 public:
  SliceAttention(const model::ModelConfig& config, const Layer& layer, size_t layer_index, const RotaryTable& table,
                 CpuCache& cache, Executor& executor, Workspace& w)
      : config_(config),
        layer_(layer),
        layer_index_(layer_index),
        table_(table),
        cache_(cache),
        executor_(executor),
        w_(w),
        bf16_(config.arithmetic == model::Arithmetic::kBf16),
        channels_(static_cast<size_t>(config.kv_channels)),
        groups_(static_cast<size_t>(config.num_query_groups)),
        per_group_(static_cast<size_t>(config.num_attention_heads) / groups_),
        scale_(1.0f / std::sqrt(static_cast<float>(channels_))) {}

  void run() {
    const size_t heads = groups_ * (per_group_ + 2);
    executor_.each(w_.tokens.size(), heads * channels_ * 16, [&](size_t t) { prepare(t); });
    size_t longest = 0;
    for (const Token& token : w_.tokens) longest = std::max<size_t>(longest, token.position + 1);
    const size_t tasks = w_.tokens.size() * groups_;
    const size_t splits = (longest + kSplit - 1) / kSplit;
    if (splits == 1 || tasks >= 4 * executor_.threads()) {
      executor_.each(tasks, longest * channels_ * per_group_ * 4, [&](size_t i) { whole(i / groups_, i % groups_); });
    } else {
      in_splits(splits, longest);
    }
  }

 private:
  float* query(size_t t, size_t g) const { return w_.qkv[t] + g * (per_group_ + 2) * channels_; }

  void head(float* x, const NormWeights& norm, size_t position) const {
    const Kernels& k = executor_.kernels();
    if (norm.gamma != nullptr) {
      k.normalise({x, norm.gamma, norm.beta, x, channels_, static_cast<float>(config_.norm_epsilon),
                   config_.norm == model::Norm::kLayerNorm, false});
    }
    if (table_.half() > 0) {
      k.rotate(x, table_.cosine(position), table_.sine(position), table_.half(), config_.rotary_interleaved);
    }
    if (bf16_) k.round(x, channels_);
  }

  void store(const float* x, std::byte* to) const {
    if (cache_.number == Number::kFloat32) {
      std::memcpy(to, x, channels_ * sizeof(float));
    } else {
      executor_.kernels().narrow_bf16(x, reinterpret_cast<uint16_t*>(to), channels_);
    }
  }

  void prepare(size_t t) const {
    const Token& token = w_.tokens[t];
    for (size_t g = 0; g < groups_; ++g) {
      float* rows = query(t, g);
      for (size_t h = 0; h < per_group_; ++h) head(rows + h * channels_, layer_.q_norm, token.position);
      head(rows + per_group_ * channels_, layer_.k_norm, token.position);
      const size_t place = cache_.offset(layer_index_, *token.run, g, token.position);
      store(rows + per_group_ * channels_, cache_.keys.data() + place);
      store(rows + (per_group_ + 1) * channels_, cache_.values.data() + place);
    }
  }

  // One split of one token and group; results: top (per_group), total (per_group), weighted (per_group, channels).
  void split(size_t t, size_t g, size_t begin, float* results) const {
    const Token& token = w_.tokens[t];
    const void* keys[kSplit];
    const void* values[kSplit];
    const size_t count = std::min<size_t>(kSplit, token.position + 1 - begin);
    for (size_t j = 0; j < count; ++j) {
      const size_t place = cache_.offset(layer_index_, *token.run, g, begin + j);
      keys[j] = cache_.keys.data() + place;
      values[j] = cache_.values.data() + place;
    }
    executor_.kernels().attend[static_cast<size_t>(cache_.number)]({query(t, g), keys, values, count, per_group_,
                                                                    channels_, scale_, results, results + per_group_,
                                                                    results + 2 * per_group_});
  }

  size_t result_size() const { return per_group_ * (channels_ + 2); }

  void combine(size_t t, size_t g, const float* results, size_t splits) const {
    for (size_t h = 0; h < per_group_; ++h) {
      float* y = w_.attended[t] + (g * per_group_ + h) * channels_;
      executor_.kernels().combine({results + h, results + per_group_ + h, results + 2 * per_group_ + h * channels_,
                                   splits, result_size(), result_size(), channels_, bf16_, y});
    }
  }

  void whole(size_t t, size_t g) const {
    const size_t splits = w_.tokens[t].position / kSplit + 1;
    std::vector<float> results(splits * result_size());
    for (size_t s = 0; s < splits; ++s) split(t, g, s * kSplit, &results[s * result_size()]);
    combine(t, g, results.data(), splits);
  }

  // Few tokens with a long past: the splits are spread over the threads.
  void in_splits(size_t splits, size_t longest) {
    const size_t tasks = w_.tokens.size() * groups_;
    w_.splits.resize(tasks * splits * result_size());
    const auto results = [&](size_t task, size_t s) { return &w_.splits[(task * splits + s) * result_size()]; };
    executor_.each(tasks * splits, std::min(longest, kSplit) * channels_ * per_group_ * 4, [&](size_t i) {
      const size_t task = i / splits;
      const size_t s = i % splits;
      const size_t t = task / groups_;
      if (s * kSplit <= w_.tokens[t].position) split(t, task % groups_, s * kSplit, results(task, s));
    });
    executor_.each(tasks, splits * channels_ * per_group_ * 4, [&](size_t task) {
      const size_t t = task / groups_;
      combine(t, task % groups_, results(task, 0), w_.tokens[t].position / kSplit + 1);
    });
  }

  const model::ModelConfig& config_;
  const Layer& layer_;
  size_t layer_index_;
  const RotaryTable& table_;
  CpuCache& cache_;
  Executor& executor_;
  Workspace& w_;
  bool bf16_;
  size_t channels_;
  size_t groups_;
  size_t per_group_;
  float scale_;
};

}  // namespace

RotaryTable::RotaryTable(const model::ModelConfig& config) {
  if (config.positions != model::Positions::kRope) return;
  const auto rotated = static_cast<size_t>(config.kv_channels * config.rotary_percent);
  frequencies_ = arithmetic::inverse_frequencies(config.rotary_base, rotated);
}

void RotaryTable::cover(size_t positions) {
  if (half() == 0) return;
  const size_t known = table_.size() / (2 * half());
  if (positions <= known) return;
  table_.resize(positions * 2 * half());
  for (size_t p = known; p < positions; ++p) {
    float* row = table_.data() + p * 2 * half();
    arithmetic::rotary_row(frequencies_, static_cast<uint32_t>(p), row, row + half());
  }
}

void attend_slice(const model::ModelConfig& config, const Layer& layer, size_t layer_index, const RotaryTable& table,
                  CpuCache& cache, Executor& executor, Workspace& w) {
  SliceAttention(config, layer, layer_index, table, cache, executor, w).run();
}

}  // namespace assay::cpu
