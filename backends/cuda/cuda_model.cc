#include "backends/cuda/cuda_model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/fast_decode.h"
#include "backends/cuda/fast_operators.h"
#include "backends/cuda/feed_forward.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/model_options.h"
#include "backends/cuda/outputs.h"
#include "backends/cuda/read_bandwidth.h"
#include "backends/cuda/rotary_table.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/slices.h"
#include "backends/cuda/workspace.h"
#include "backends/reference/border/measurable.h"

namespace assay::cuda {
namespace {

using backend::Cache;
using model::ModelConfig;

constexpr size_t kLeastRead = size_t{1} << 30;  // bytes, to measure the read bandwidth
constexpr size_t kMostRead = size_t{16} << 30;

// How the weights came, for the device's description.
std::string origin_of(const ModelOptions& options) {
  if (options.random.has_value()) return ", random weights of seed " + std::to_string(*options.random);
  return ", loaded by " + std::to_string(options.threads) + (options.threads == 1 ? " thread" : " threads");
}

struct CudaCache : Cache {
  DeviceBuffer<std::byte> keys;
  DeviceBuffer<std::byte> values;
};

class CudaModel : public backend::Model, public backend::Measurable {
 public:
  CudaModel(const ModelConfig& config, Device device, Weights weights, std::vector<std::string> notes,
            const ModelOptions& options, Workspace workspace, std::unique_ptr<vendor::FastPrefill> fast)
      : config_(config),
        device_(std::move(device)),
        weights_(std::move(weights)),
        notes_(std::move(notes)),
        name_("cuda " + device_.name + origin_of(options)),
        bf16_(config.arithmetic == model::Arithmetic::kBf16),
        rotary_(config_),
        outputs_(config_, weights_),
        w_(std::move(workspace)),
        decode_(options.plain_decode ? nullptr : FastDecode::open(config_, weights_)),
        fast_(std::move(fast)) {
    if (fast_ != nullptr) fast_operators_ = fast_operators(*fast_);
  }

  const ModelConfig& config() const override { return config_; }
  uint64_t weight_bytes() const override { return weights_.region.size(); }
  const std::string& device() const override { return name_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  uint64_t determinism() const override {
    return fast_ == nullptr || !bf16_ ? backend::kOwnLevels : uint64_t{ASSAY_CAP_L1};
  }

  Result<std::unique_ptr<Cache>> make_cache(const assay_cache_spec& spec) override {
    return on_device([&]() -> Result<std::unique_ptr<Cache>> {
      use_device(device_);
      auto cache = std::make_unique<CudaCache>();
      const uint64_t vectors = uint64_t{spec.block_size} * spec.block_count * weights_.layers.size() *
                               static_cast<uint64_t>(config_.num_query_groups);
      const uint64_t bytes = vectors * static_cast<uint64_t>(config_.kv_channels) * (bf16_ ? 2 : 4);
      const std::string what = "KV cache of " + std::to_string(spec.block_count) + " blocks of " +
                               std::to_string(spec.block_size) + " tokens (keys, and as much again for values)";
      for (DeviceBuffer<std::byte>* half : {&cache->keys, &cache->values}) {
        Result<DeviceBuffer<std::byte>> taken = take_memory(bytes, what);
        if (!taken) return taken.status();
        *half = std::move(*taken);
      }
      return std::unique_ptr<Cache>(std::move(cache));
    });
  }

  Status forward(Cache& cache, std::span<const assay_run> runs, float* const* routing_margins) override {
    return on_device([&]() -> Status {
      use_device(device_);
      if (decode_ != nullptr && runs.size() <= w_.slice) {
        const CacheView view = view_of(static_cast<CudaCache&>(cache));
        if (FastDecode::takes(runs, view)) return decode(view, runs, routing_margins);
      }
      const uint32_t least_fast = fast_ != nullptr && bf16_ ? vendor::kLeastTokens : 0;
      for (const Slice& cut : cut_slices(runs, static_cast<uint32_t>(w_.slice), least_fast)) {
        w_.tokens.clear();
        w_.fast = cut.fast;
        for (const Piece& piece : cut.pieces) {
          float* margins = routing_margins != nullptr ? routing_margins[piece.run - runs.data()] : nullptr;
          for (uint32_t i = piece.begin; i < piece.begin + piece.count; ++i) {
            w_.tokens.push_back({piece.run, i, margins != nullptr ? margins + i * w_.moe_layers : nullptr});
          }
        }
        slice(static_cast<CudaCache&>(cache));
      }
      stream_.wait();
      return {};
    });
  }

  Result<backend::DeviceFacts> device_facts() override {
    return on_device([&]() -> Result<backend::DeviceFacts> {
      use_device(device_);
      size_t free = 0;
      size_t total = 0;
      check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      backend::DeviceFacts facts{.memory_used = total - free, .memory_total = total};
      DeviceBuffer<std::byte> own;  // where the weights would fit a cache
      if (weights_.region.size() < kLeastRead) own = DeviceBuffer<std::byte>(kLeastRead);
      const DeviceBuffer<std::byte>& read = own.size() > 0 ? own : weights_.region;
      facts.read_bandwidth = measure_read_bandwidth(read.data(), std::min(read.size(), kMostRead), stream_);
      return facts;
    });
  }

  Result<std::vector<backend::KernelTime>> profile(Cache& cache, std::span<const assay_run> runs) override {
    return on_device([&]() -> Result<std::vector<backend::KernelTime>> {
      use_device(device_);
      KernelClock clock(stream_);
      w_.clock = &clock;
      const Status status = forward(cache, runs, nullptr);
      w_.clock = nullptr;
      if (!status.ok()) return status;
      return clock.read();
    });
  }

 private:
  CacheView view_of(const CudaCache& cache) const {
    return {cache.keys.data(),
            cache.values.data(),
            bf16_,
            config_.num_query_groups,
            config_.kv_channels,
            static_cast<int>(cache.block_size),
            static_cast<int>(cache.block_count)};
  }

  // One token of each of a few sequences, by the kernels made for that.
  Status decode(const CacheView& view, std::span<const assay_run> runs, float* const* routing_margins) {
    w_.tokens.clear();
    for (size_t r = 0; r < runs.size(); ++r) {
      w_.tokens.push_back({&runs[r], 0, routing_margins != nullptr ? routing_margins[r] : nullptr});
    }
    outputs_.write(decode_->step(view, w_, rotary_, stream_), w_, stream_);
    stream_.wait();
    return {};
  }

  // Passes w_.tokens through all layers and writes their outputs. Earlier tokens of the same sequences are in the
  // cache, or earlier in this slice.
  void slice(CudaCache& cache) {
    place_tokens(cache.block_size);
    const CacheView view = view_of(cache);
    w_.mark("embed", 6.0 * w_.places.count * config_.hidden_size);
    embed({.words = weights_.word_embeddings,
           .positions = weights_.position_embeddings,
           .ids = w_.ids,
           .where = w_.places.position,
           .x = w_.x.data(),
           .tokens = w_.places.count},
          stream_.get());
    size_t moe_layer = 0;
    for (size_t l = 0; l < weights_.layers.size(); ++l) {
      const Layer& layer = weights_.layers[l];
      if (l == 0) {
        w_.mark("norm", (bf16_ ? 6.0 : 8.0) * w_.places.count * config_.hidden_size);
        normalise(norm_of(config_, layer.attention_norm, w_), stream_.get());
      }
      attention(layer, static_cast<int>(l), view);
      const NormWeights* next = l + 1 < weights_.layers.size() ? &weights_.layers[l + 1].attention_norm : nullptr;
      feed_forward(config_, {layer, moe_layer, next}, operators(), w_, stream_.get());
      moe_layer += layer.router.weight.data != nullptr ? 1 : 0;
    }
    outputs_.write(operators(), w_, stream_);
  }

  // Ids, positions and block tables of the slice's tokens to the device.
  void place_tokens(uint32_t block_size) {
    const size_t count = w_.tokens.size();
    w_.places = {.count = static_cast<int>(count)};
    w_.ints.clear();
    for (const Token& token : w_.tokens) w_.ints.push(token.run->ids[token.index]);
    for (const Token& token : w_.tokens) {
      const auto position = static_cast<int32_t>(token.run->start + token.index);
      w_.places.longest = std::max(w_.places.longest, position + 1);
      w_.ints.push(position);
    }
    int32_t table = 0;
    const assay_run* previous = nullptr;
    std::vector<const assay_run*> tables;  // of the slice's runs, in order
    w_.bundles.clear();
    w_.runs.clear();
    for (size_t t = 0; t < count; ++t) {
      const Token& token = w_.tokens[t];
      if (token.run != previous || w_.bundles.back() == kBundle) {
        w_.bundles.insert(w_.bundles.end(), {static_cast<int32_t>(t), 0});
      }
      ++w_.bundles.back();
      if (token.run != previous) {
        if (previous != nullptr) table += blocks_of(*previous, block_size);
        previous = token.run;
        tables.push_back(token.run);
        w_.runs.push_back({static_cast<int>(t), 0, static_cast<int>(token.run->start + token.index)});
      }
      ++w_.runs.back().count;
      w_.ints.push(table);
    }
    for (const int32_t value : w_.bundles) w_.ints.push(value);
    for (const assay_run* run : tables) {
      for (int32_t b = 0; b < blocks_of(*run, block_size); ++b) w_.ints.push(run->blocks[b]);
    }
    w_.ints.upload(stream_);
    w_.ids = w_.ints.at(0);
    w_.places.position = w_.ints.at(count);
    w_.places.table = w_.ints.at(2 * count);
    w_.places.bundles = w_.ints.at(3 * count);
    w_.places.bundle_count = static_cast<int>(w_.bundles.size() / 2);
    w_.places.alone = 0;
    for (size_t b = 1; b < w_.bundles.size(); b += 2) w_.places.alone += w_.bundles[b] == 1 ? 1 : 0;
    w_.places.blocks = w_.ints.at(3 * count + w_.bundles.size());
    rotary_.cover(static_cast<size_t>(w_.places.longest), stream_);
  }

  static int32_t blocks_of(const assay_run& run, uint32_t block_size) {
    return static_cast<int32_t>((run.start + run.count + block_size - 1) / block_size);
  }

  // onto: y = y + result.
  void linear(const char* name, const Linear& layer, const Inputs& x, float* y, bool onto = false) {
    LinearArgs args{.weight = layer.weight, .x = x, .y = y};
    args.y_stride = layer.weight.rows;
    args.tokens = w_.places.count;
    args.bias = layer.bias;
    const Matrix& m = layer.weight;
    w_.mark(name, linear_bytes(m, args.tokens), 2.0 * m.rows * m.cols * args.tokens);
    args.onto = onto;
    operators().linear(args, stream_.get());
  }

  // Weights once, inputs once, results once.
  double linear_bytes(const Matrix& m, int tokens) const {
    return static_cast<double>(m.bytes()) + (bf16_ ? 2.0 : 4.0) * m.cols * tokens + 4.0 * m.rows * tokens;
  }

  // Reads w_.normed, adds to w_.x.
  void attention(const Layer& layer, int index, const CacheView& view) {
    const int heads = config_.num_attention_heads;
    const int per_group = heads / config_.num_query_groups;
    linear("query-key-value layer", layer.qkv, w_.normed.of(config_.hidden_size), w_.qkv.data());
    HeadsArgs prepare{.qkv = w_.qkv.data(), .queries = w_.queries.data(), .cache = view, .tokens = w_.places};
    prepare.layer = index;
    prepare.per_group = per_group;
    prepare.q_norm = {layer.q_norm.gamma, layer.q_norm.beta};
    prepare.k_norm = {layer.k_norm.gamma, layer.k_norm.beta};
    prepare.epsilon = static_cast<float>(config_.norm_epsilon);
    prepare.centred = config_.norm == model::Norm::kLayerNorm;
    prepare.rotary = rotary_.data();
    prepare.half = static_cast<int>(rotary_.half());
    prepare.interleaved = config_.rotary_interleaved;
    w_.mark("heads", 8.0 * w_.places.count * layer.qkv.weight.rows);
    prepare_heads(prepare, stream_.get());
    AttendArgs attend{.queries = w_.queries.data(), .cache = view};
    attend.layer = index;
    attend.per_group = per_group;
    attend.scale = 1.0f / std::sqrt(static_cast<float>(config_.kv_channels));
    attend.y = w_.attended.of(heads * config_.kv_channels);
    w_.mark("attention", attention_bytes(), attention_flops());
    attend_runs(attend);
    linear("projection", layer.proj, attend.y, w_.x.data(), true);
  }

  // Keys and values of every run's past, once.
  double attention_bytes() const {
    double positions = 0;
    for (size_t t = 0; t < w_.tokens.size(); ++t) {
      const Token& token = w_.tokens[t];
      const bool last = t + 1 == w_.tokens.size() || w_.tokens[t + 1].run != token.run;
      if (last) positions += token.run->start + token.index + 1;
    }
    return positions * 2 * config_.num_query_groups * config_.kv_channels * (bf16_ ? 2 : 4);
  }

  double attention_flops() const {
    double pairs = 0;
    for (const Token& token : w_.tokens) pairs += token.run->start + token.index + 1;
    return pairs * 4 * config_.num_attention_heads * config_.kv_channels;
  }

  // Each run of a fast slice by itself where the vendor's attention takes it, all else by the own kernels.
  void attend_runs(AttendArgs attend) {
    const size_t bundles = w_.bundles.size() / 2;
    if (!w_.fast) return attend_bundles(attend, 0, bundles);
    attend.tokens = w_.places;
    size_t end = 0;
    for (const vendor::RunPlace& run : w_.runs) {
      const size_t first = end;
      while (end < bundles && w_.bundles[2 * end] < run.first + run.count) ++end;
      if (!fast_->attend(attend, run, stream_.get())) attend_bundles(attend, first, end);
    }
  }

  // The bundles [first_bundle, bundles): all at once, or as many at a time as the scratch for their splits may hold.
  void attend_bundles(AttendArgs attend, size_t first_bundle, size_t bundles) {
    constexpr size_t kMostFloats = size_t{64} << 20;
    attend.tokens = w_.places;
    const bool all = first_bundle == 0 && bundles == w_.bundles.size() / 2;
    if (const size_t floats = all ? attend_floats(attend) : kMostFloats + 1; floats <= kMostFloats) {
      w_.splits.reserve(floats);
      attend.splits = w_.splits.data();
      operators_.attend(attend, stream_.get());
      return;
    }
    const size_t each = split_floats(1, config_.num_attention_heads, config_.kv_channels, w_.places.longest);
    const auto most = static_cast<int32_t>(std::max<size_t>(kBundle, kMostFloats / each));
    for (size_t first = first_bundle; first < bundles;) {
      size_t end = first;
      const int32_t begin = w_.bundles[2 * first];
      int32_t behind = begin;
      for (; end < bundles && w_.bundles[2 * end] + w_.bundles[2 * end + 1] - begin <= most; ++end) {
        behind = w_.bundles[2 * end] + w_.bundles[2 * end + 1];
      }
      attend.first = begin;
      attend.tokens = w_.places;
      attend.tokens.count = behind;
      attend.tokens.bundles = w_.places.bundles + 2 * first;
      attend.tokens.bundle_count = static_cast<int>(end - first);
      attend.tokens.alone = -1;
      w_.splits.reserve(each * static_cast<size_t>(behind - begin));
      attend.splits = w_.splits.data();
      operators_.attend(attend, stream_.get());
      first = end;
    }
  }

  const Operators& operators() const { return w_.fast ? fast_operators_ : operators_; }

  ModelConfig config_;
  Device device_;
  Weights weights_;
  std::vector<std::string> notes_;
  std::string name_;
  bool bf16_;
  Operators operators_;
  Stream stream_;
  RotaryTable rotary_;
  OutputStage outputs_;
  Workspace w_;
  std::unique_ptr<FastDecode> decode_;         // null: another model, or decode=plain
  std::unique_ptr<vendor::FastPrefill> fast_;  // of prefill=fast, else null
  Operators fast_operators_;
};

// The model of these weights; the vendor's libraries are opened where an option asks for them.
Result<std::unique_ptr<backend::Model>> model_of(const Device& device, const ModelConfig& config, Weights weights,
                                                 std::vector<std::string> notes, const ModelOptions& options) {
  Workspace workspace = make_workspace(config, options.slice);
  std::unique_ptr<vendor::FastPrefill> fast;
  if (options.fast_prefill) {
    auto opened = vendor::FastPrefill::open(prefill_model(config, weights, workspace.slice));
    if (!opened) return opened.status();
    fast = *std::move(opened);
    notes.insert(notes.end(), fast->notes().begin(), fast->notes().end());
  }
  return std::unique_ptr<backend::Model>(std::make_unique<CudaModel>(
      config, device, std::move(weights), std::move(notes), options, std::move(workspace), std::move(fast)));
}

Result<std::unique_ptr<backend::Model>> open_on(const Device& device, const ModelConfig& config,
                                                const std::string& checkpoint, const ModelOptions& options) {
  use_device(device);
  std::vector<std::string> notes;
  if (options.random.has_value()) {
    Result<Weights> weights = random_weights(config, *options.random);
    if (!weights) return weights.status();
    notes.push_back("weights are random (backend option 'weights'), checkpoint '" + checkpoint + "' is not read");
    return model_of(device, config, std::move(*weights), std::move(notes), options);
  }
  Result<std::unique_ptr<model::Checkpoint>> opened = model::Checkpoint::open(checkpoint);
  if (!opened) return opened.status();
  Result<Weights> weights = load_weights(**opened, config, device, options.threads);
  if (!weights) return weights.status();
  notes = backend::unused_note((*opened)->contents().path, weights->unused);
  return model_of(device, config, std::move(*weights), std::move(notes), options);
}

}  // namespace

Result<std::unique_ptr<backend::Model>> open_cuda(const ModelConfig& config, std::string_view checkpoint,
                                                  std::string_view options) {
  const Result<ModelOptions> parsed = parse_model_options(options);
  if (!parsed) return parsed.status();
  Result<Device> device = find_device();
  if (!device) return device.status();
  if (parsed->fast_prefill) {
    if (Status usable = vendor::FastPrefill::usable(config.arithmetic == model::Arithmetic::kBf16); !usable.ok()) {
      return usable;  // before the weights are read
    }
  }
  return on_device([&] { return open_on(*device, config, std::string(checkpoint), *parsed); });
}

}  // namespace assay::cuda
