#include "backends/cpu/cpu_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/attention.h"
#include "backends/cpu/cpu_cache.h"
#include "backends/cpu/executor.h"
#include "backends/cpu/feed_forward.h"
#include "backends/cpu/vocabulary.h"
#include "backends/cpu/workspace.h"

namespace assay::cpu {
namespace {

using backend::Cache;
using model::ModelConfig;

constexpr int64_t kParallelFrom = int64_t{1} << 19;  // multiply-adds: about 40 us of one core

class CpuModel : public backend::Model {
 public:
  CpuModel(const ModelConfig& config, const Kernels& kernels, std::unique_ptr<ThreadPool> pool, size_t parallel_from,
           Weights weights, std::vector<std::string> notes)
      : config_(config),
        pool_(std::move(pool)),
        executor_(kernels, *pool_, parallel_from),
        weights_(std::move(weights)),
        table_(config_),
        bf16_(config.arithmetic == model::Arithmetic::kBf16),
        moe_layers_(static_cast<size_t>(std::count(config.moe_layers.begin(), config.moe_layers.end(), true))),
        device_("cpu " + std::string(kernels.name) + " x" + std::to_string(pool_->threads())),
        notes_(std::move(notes)) {}

  const ModelConfig& config() const override { return config_; }
  uint64_t weight_bytes() const override { return weights_.bytes; }
  const std::string& device() const override { return device_; }
  const std::vector<std::string>& notes() const override { return notes_; }

  Result<std::unique_ptr<Cache>> make_cache(const assay_cache_spec& spec) override {
    auto cache = std::make_unique<CpuCache>();
    cache->number = bf16_ ? Number::kBfloat16 : Number::kFloat32;
    cache->groups = static_cast<size_t>(config_.num_query_groups);
    cache->channels = static_cast<size_t>(config_.kv_channels);
    const uint64_t vectors = uint64_t{spec.block_size} * spec.block_count * weights_.layers.size() * cache->groups;
    const uint64_t bytes = vectors * cache->channels * number_size(cache->number);
    const std::string what = "KV cache of " + std::to_string(spec.block_count) + " blocks of " +
                             std::to_string(spec.block_size) + " tokens (keys, and as much again for values)";
    for (Region* region : {&cache->keys, &cache->values}) {
      Result<Region> made = Region::allocate(bytes, what);
      if (!made) return made.status();
      *region = std::move(*made);
    }
    return std::unique_ptr<Cache>(std::move(cache));
  }

  Status forward(Cache& cache, std::span<const assay_run> runs, float* const* routing_margins) override {
    w_.tokens.clear();
    for (size_t r = 0; r < runs.size(); ++r) {
      const assay_run& run = runs[r];
      float* margins = routing_margins != nullptr ? routing_margins[r] : nullptr;
      table_.cover(size_t{run.start} + run.count);
      for (uint32_t i = 0; i < run.count; ++i) {
        w_.tokens.push_back({&run, i, run.start + i, margins != nullptr ? margins + i * moe_layers_ : nullptr});
        if (w_.tokens.size() == kSlice) slice(static_cast<CpuCache&>(cache));
      }
    }
    if (!w_.tokens.empty()) slice(static_cast<CpuCache&>(cache));
    return {};
  }

 private:
  void normalise(const NormWeights& norm) {
    const auto hidden = static_cast<size_t>(config_.hidden_size);
    executor_.each(w_.tokens.size(), hidden * 4, [&](size_t t) {
      executor_.kernels().normalise({w_.x[t], norm.gamma, norm.beta, w_.normed[t], hidden,
                                     static_cast<float>(config_.norm_epsilon), config_.norm == model::Norm::kLayerNorm,
                                     bf16_});
    });
  }

  void widen(const Matrix& m, size_t row, float* to) const {
    const auto* data = static_cast<const std::byte*>(m.data) + row * m.cols * number_size(m.number);
    executor_.kernels().widen[static_cast<size_t>(m.number)](data, to, m.cols);
  }

  void embed() {
    for (size_t t = 0; t < w_.tokens.size(); ++t) {
      const Token& token = w_.tokens[t];
      widen(weights_.word_embeddings, static_cast<size_t>(token.run->ids[token.index]), w_.x[t]);
      if (weights_.position_embeddings.data == nullptr) continue;
      widen(weights_.position_embeddings, token.position, w_.normed[t]);
      executor_.kernels().add(w_.normed[t], w_.x[t], weights_.position_embeddings.cols);
    }
  }

  // Passes w_.tokens through all layers, writes their outputs and clears them. Earlier tokens of the same sequences
  // are in the cache, or earlier in this slice.
  void slice(CpuCache& cache) {
    const size_t count = w_.tokens.size();
    const auto hidden = static_cast<size_t>(config_.hidden_size);
    w_.x.resize(count, hidden);
    w_.normed.resize(count, hidden);
    w_.projected.resize(count, hidden);
    w_.qkv.resize(
        count, static_cast<size_t>((config_.num_attention_heads + 2 * config_.num_query_groups) * config_.kv_channels));
    w_.attended.resize(count, static_cast<size_t>(config_.num_attention_heads * config_.kv_channels));
    embed();
    size_t moe_layer = 0;
    for (size_t l = 0; l < weights_.layers.size(); ++l) {
      const Layer& layer = weights_.layers[l];
      normalise(layer.attention_norm);
      executor_.linear(layer.qkv, w_.normed.get(), w_.qkv.get(), count, [](size_t, size_t) {});
      attend_slice(config_, layer, l, table_, cache, executor_, w_);
      executor_.linear(layer.proj, w_.attended.get(), w_.projected.get(), count, [&](size_t begin, size_t end) {
        for (size_t t = 0; t < count; ++t) {
          executor_.kernels().add(w_.projected[t] + begin, w_.x[t] + begin, end - begin);
        }
      });
      normalise(layer.mlp_norm);
      feed_forward(config_, layer, executor_, w_);
      if (layer.router.weight.data != nullptr) write_routing(moe_layer++);
    }
    write_outputs(config_, weights_, executor_, w_);
    w_.tokens.clear();
  }

  void write_routing(size_t moe_layer) const {
    const auto topk = static_cast<size_t>(config_.moe.topk);
    for (size_t t = 0; t < w_.tokens.size(); ++t) {
      const Token& token = w_.tokens[t];
      if (token.margins != nullptr) token.margins[moe_layer] = w_.margins[t];
      if (token.run->output.routing == nullptr) continue;
      std::copy_n(&w_.experts[t * topk], topk,
                  token.run->output.routing + (token.index * moe_layers_ + moe_layer) * topk);
    }
  }

  ModelConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  Executor executor_;
  Weights weights_;
  RotaryTable table_;
  bool bf16_;
  size_t moe_layers_;
  std::string device_;
  std::vector<std::string> notes_;
  Workspace w_;
};

}  // namespace

Result<std::unique_ptr<backend::Model>> open_cpu(const ModelConfig& config, std::string_view checkpoint,
                                                 std::string_view options) {
  constexpr std::string_view kKnown[] = {"isa", "threads", "parallel_from"};
  Result<backend::Options> parsed = backend::Options::parse(options, kKnown);
  if (!parsed) return parsed.status();
  Result<std::string> isa = parsed->text("isa", "auto");
  if (!isa) return isa.status();
  Result<int64_t> threads = parsed->number("threads", 0);
  if (!threads) return threads.status();
  if (*threads < 0 || *threads > 1024) {
    return invalid("backend option 'threads': " + std::to_string(*threads) +
                   ", expected 1 .. 1024, or 0 for all cores");
  }
  Result<int64_t> parallel_from = parsed->number("parallel_from", kParallelFrom);
  if (!parallel_from) return parallel_from.status();
  if (*parallel_from < 0) {
    return invalid("backend option 'parallel_from': " + std::to_string(*parallel_from) + ", expected at least 0");
  }
  Result<const Kernels*> kernels = select_kernels(*isa);
  if (!kernels) return kernels.status();
  Result<std::unique_ptr<model::Checkpoint>> opened = model::Checkpoint::open(std::string(checkpoint));
  if (!opened) return opened.status();
  auto pool = std::make_unique<ThreadPool>(*threads > 0 ? static_cast<int>(*threads) : available_cores());
  Result<Weights> weights = load_weights(**opened, config, *pool);
  if (!weights) return weights.status();
  auto notes = backend::unused_note((*opened)->contents().path, weights->unused);
  return std::unique_ptr<backend::Model>(std::make_unique<CpuModel>(
      config, **kernels, std::move(pool), static_cast<size_t>(*parallel_from), std::move(*weights), std::move(notes)));
}

}  // namespace assay::cpu
