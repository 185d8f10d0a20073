#include "backends/cpu/cpu_weights.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "backends/reference/arithmetic/formats.h"

namespace assay::cpu {
namespace {

using model::Dtype;
using model::LinearRef;
using model::NormRef;
using model::WeightRef;

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kJobBytes = uint64_t{8} << 20;  // what one thread reads at a time

Dtype dtype_of(Number number) {
  switch (number) {
    case Number::kFloat32:
      return Dtype::kFloat32;
    case Number::kBfloat16:
      return Dtype::kBfloat16;
    default:
      return Dtype::kFloat16;
  }
}

// Plans places in the region first (addresses are offsets until the region is there), then reads everything.
class Loader {
 public:
  Loader(const model::Checkpoint& checkpoint, const model::ModelConfig& config)
      : checkpoint_(checkpoint), config_(config), bf16_(config.arithmetic == model::Arithmetic::kBf16) {}

  // The layout is walked twice: without a base address it only adds up, with one it hands out addresses.
  void walk(const model::WeightMap& map, Weights& weights, std::byte* base) {
    base_ = base;
    bytes = 0;
    jobs_.clear();
    weights.layers.clear();
    weights.word_embeddings = matrix(map.word_embeddings);
    weights.position_embeddings = matrix(map.position_embeddings);
    for (const model::LayerRefs& refs : map.layers) weights.layers.push_back(layer(refs));
    weights.final_norm = norm(map.final_norm);
    weights.output = config_.tied_embeddings ? weights.word_embeddings : matrix(map.output);
  }

  Status read(ThreadPool& pool) {
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    Status status;
    pool.run(static_cast<size_t>(pool.threads()), [&](size_t) {
      for (size_t i = next.fetch_add(1); i < jobs_.size(); i = next.fetch_add(1)) {
        const Status done = run(jobs_[i]);
        if (done.ok()) continue;
        const std::scoped_lock lock(mutex);
        if (status.ok()) status = done;
        next = jobs_.size();
      }
    });
    checkpoint_.drop_pages();
    return status;
  }

  uint64_t bytes = 0;

 private:
  enum class Finish { kNone, kRound, kRoundAndAddOne, kAddOne };

  struct Job {
    const WeightRef* ref;
    int64_t begin;  // rows
    int64_t end;
    Dtype dtype;
    std::byte* to;
    Finish finish;
  };

  std::byte* place(const WeightRef& ref, size_t element) {
    std::byte* to = base_ == nullptr ? nullptr : base_ + bytes;
    bytes += (static_cast<uint64_t>(ref.elements()) * element + kAlignment - 1) / kAlignment * kAlignment;
    return to;
  }

  Matrix matrix(const WeightRef& ref) {
    Matrix m;
    if (!ref.present()) return m;
    m.rows = static_cast<size_t>(ref.rows);
    m.cols = static_cast<size_t>(ref.cols);
    if (bf16_ || ref.stored == Dtype::kBfloat16) {
      m.number = Number::kBfloat16;
    } else {
      m.number = ref.stored == Dtype::kFloat16 ? Number::kFloat16 : Number::kFloat32;
    }
    std::byte* to = place(ref, number_size(m.number));
    m.data = to;
    const uint64_t row_bytes = m.cols * number_size(m.number);
    const auto rows_a_job = static_cast<int64_t>(std::max<uint64_t>(1, kJobBytes / row_bytes));
    for (int64_t row = 0; to != nullptr && row < ref.rows; row += rows_a_job) {
      const int64_t end = std::min(ref.rows, row + rows_a_job);
      jobs_.push_back({&ref, row, end, dtype_of(m.number), to + static_cast<uint64_t>(row) * row_bytes, Finish::kNone});
    }
    return m;
  }

  const float* vector(const WeightRef& ref, Finish finish) {
    if (!ref.present()) return nullptr;
    std::byte* to = place(ref, sizeof(float));
    if (to != nullptr) jobs_.push_back({&ref, 0, ref.rows, Dtype::kFloat32, to, finish});
    return reinterpret_cast<const float*>(to);
  }

  Linear linear(const LinearRef& ref) { return {matrix(ref.weight), vector(ref.bias, rounding())}; }

  NormWeights norm(const NormRef& ref) {
    const bool one = config_.norm_gamma_plus_one;
    const Finish gamma =
        bf16_ ? (one ? Finish::kRoundAndAddOne : Finish::kRound) : (one ? Finish::kAddOne : Finish::kNone);
    return {vector(ref.gamma, gamma), vector(ref.beta, rounding())};
  }

  Finish rounding() const { return bf16_ ? Finish::kRound : Finish::kNone; }

  Layer layer(const model::LayerRefs& refs) {
    Layer layer;
    layer.attention_norm = norm(refs.attention_norm);
    layer.qkv = linear(refs.qkv);
    layer.q_norm = norm(refs.q_norm);
    layer.k_norm = norm(refs.k_norm);
    layer.proj = linear(refs.proj);
    layer.mlp_norm = norm(refs.mlp_norm);
    layer.fc1 = linear(refs.fc1);
    layer.fc2 = linear(refs.fc2);
    layer.router = linear(refs.router);
    if (refs.expert_bias.present()) {
      layer.expert_bias = {vector(refs.expert_bias, Finish::kNone), static_cast<size_t>(refs.expert_bias.rows)};
    }
    for (const LinearRef& ref : refs.expert_fc1) layer.expert_fc1.push_back(linear(ref));
    for (const LinearRef& ref : refs.expert_fc2) layer.expert_fc2.push_back(linear(ref));
    layer.shared_fc1 = linear(refs.shared_fc1);
    layer.shared_fc2 = linear(refs.shared_fc2);
    layer.shared_gate = matrix(refs.shared_gate);
    return layer;
  }

  Status run(const Job& job) const {
    Status status = model::read_weight_rows(checkpoint_, *job.ref, job.begin, job.end, job.dtype, job.to);
    if (!status.ok() || job.finish == Finish::kNone) return status;
    auto* values = reinterpret_cast<float*>(job.to);
    for (int64_t i = 0; i < job.ref->elements(); ++i) {
      if (job.finish != Finish::kAddOne) values[i] = arithmetic::round_bf16(values[i]);
      if (job.finish != Finish::kRound) values[i] = values[i] + 1.0f;
    }
    return status;
  }

  const model::Checkpoint& checkpoint_;
  const model::ModelConfig& config_;
  const bool bf16_;
  std::byte* base_ = nullptr;
  std::vector<Job> jobs_;
};

}  // namespace

Result<Weights> load_weights(const model::Checkpoint& checkpoint, const model::ModelConfig& config, ThreadPool& pool) {
  Result<model::WeightMap> map = model::map_weights(checkpoint.contents(), config);
  if (!map) return map.status();
  Weights weights;
  Loader loader(checkpoint, config);
  loader.walk(*map, weights, nullptr);
  Result<Region> region = Region::allocate(loader.bytes, "weights of " + checkpoint.contents().path);
  if (!region) return region.status();
  weights.region = std::move(*region);
  weights.bytes = loader.bytes;
  weights.unused = map->unused;
  loader.walk(*map, weights, weights.region.data());
  if (Status status = loader.read(pool); !status.ok()) return status;
  return weights;
}

}  // namespace assay::cpu
