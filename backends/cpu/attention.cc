#include "backends/cpu/attention.h"

#include <cmath>
#include <cstring>

#include "backends/reference/arithmetic/attend.h"
#include "backends/reference/arithmetic/precise.h"

namespace assay::cpu {
namespace {

using arithmetic::kSplit;

constexpr size_t kBundle = 16;  // neighbouring tokens of one sequence whose queries go over keys and values together

// Tokens [first, first + count) of the slice, of one run.
struct Bundle {
  size_t first;
  size_t count;
};

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
    bundle();
    size_t longest = 0;
    for (const Token& token : w_.tokens) longest = std::max<size_t>(longest, token.position + 1);
    const size_t tasks = bundles_.size() * groups_;
    const size_t splits = (longest + kSplit - 1) / kSplit;
    if (splits == 1 || tasks >= 4 * executor_.threads()) {
      const size_t cost = longest * channels_ * per_group_ * 4 * (w_.tokens.size() / bundles_.size());
      executor_.each(tasks, cost, [&](size_t i) { whole(bundles_[i / groups_], i % groups_); });
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

  void bundle() {
    for (size_t t = 0; t < w_.tokens.size(); ++t) {
      const bool joins = t > 0 && w_.tokens[t].run == w_.tokens[t - 1].run && bundles_.back().count < kBundle;
      if (!joins) bundles_.push_back({t, 0});
      ++bundles_.back().count;
    }
  }

  size_t last_position(const Bundle& b) const { return w_.tokens[b.first + b.count - 1].position; }
  size_t result_size() const { return (channels_ + 2 + 15) / 16 * 16; }  // whole cache lines
  size_t results_of_split() const { return kBundle * per_group_ * result_size(); }

  // One split of a bundle and group, for the tokens that reach it; results: (tokens, per_group, result_size).
  void split(const Bundle& b, size_t g, size_t begin, float* results) const {
    const assay_run& run = *w_.tokens[b.first].run;
    const void* keys[kSplit];
    const void* values[kSplit];
    const size_t longest = std::min<size_t>(kSplit, last_position(b) + 1 - begin);
    for (size_t j = 0; j < longest; ++j) {
      const size_t place = cache_.offset(layer_index_, run, g, begin + j);
      keys[j] = cache_.keys.data() + place;
      values[j] = cache_.values.data() + place;
    }
    std::vector<const float*> queries;
    std::vector<size_t> counts;
    std::vector<float*> out;
    for (size_t t = 0; t < b.count; ++t) {
      const size_t position = w_.tokens[b.first + t].position;
      if (position < begin) continue;
      for (size_t h = 0; h < per_group_; ++h) {
        queries.push_back(query(b.first + t, g) + h * channels_);
        counts.push_back(std::min(kSplit, position + 1 - begin));
        out.push_back(results + (t * per_group_ + h) * result_size());
      }
    }
    executor_.kernels().attend[static_cast<size_t>(cache_.number)](
        {queries.data(), counts.data(), queries.size(), keys, values, channels_, scale_, out.data()});
  }

  void combine(const Bundle& b, size_t g, const float* results) const {
    for (size_t t = 0; t < b.count; ++t) {
      const size_t splits = w_.tokens[b.first + t].position / kSplit + 1;
      for (size_t h = 0; h < per_group_; ++h) {
        const float* result = results + (t * per_group_ + h) * result_size();
        float* y = w_.attended[b.first + t] + (g * per_group_ + h) * channels_;
        executor_.kernels().combine({result + channels_, result + channels_ + 1, result, splits, results_of_split(),
                                     results_of_split(), channels_, bf16_, y});
      }
    }
  }

  void whole(const Bundle& b, size_t g) const {
    const size_t splits = last_position(b) / kSplit + 1;
    Floats results(splits * results_of_split());
    for (size_t s = 0; s < splits; ++s) split(b, g, s * kSplit, &results[s * results_of_split()]);
    combine(b, g, results.data());
  }

  // Few bundles with a long past: the splits are spread over the threads.
  void in_splits(size_t splits, size_t longest) {
    const size_t tasks = bundles_.size() * groups_;
    w_.splits.resize(tasks * splits * results_of_split());
    const auto results = [&](size_t task, size_t s) { return &w_.splits[(task * splits + s) * results_of_split()]; };
    executor_.each(tasks * splits, std::min(longest, kSplit) * channels_ * per_group_ * 4, [&](size_t i) {
      const size_t task = i / splits;
      const size_t s = i % splits;
      const Bundle& b = bundles_[task / groups_];
      if (s * kSplit <= last_position(b)) split(b, task % groups_, s * kSplit, results(task, s));
    });
    executor_.each(tasks, splits * channels_ * per_group_ * 4,
                   [&](size_t task) { combine(bundles_[task / groups_], task % groups_, results(task, 0)); });
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
  std::vector<Bundle> bundles_;
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
