#include "backends/cuda/cuda_weights.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/weight_upload.h"

namespace assay::cuda {
namespace {

using model::Dtype;
using model::LinearRef;
using model::NormRef;
using model::WeightRef;

constexpr uint64_t kAlignment = 256;

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

// Walks the model twice: without a base address it only adds up, with one it hands out addresses and notes the jobs.
class Layout {
 public:
  explicit Layout(const model::ModelConfig& config)
      : config_(config), bf16_(config.arithmetic == model::Arithmetic::kBf16) {}

  void walk(const model::WeightMap& map, Weights& weights, std::byte* base) {
    base_ = base;
    bytes_ = 0;
    jobs_.clear();
    weights.layers.clear();
    weights.word_embeddings = matrix({&map.word_embeddings});
    weights.position_embeddings = matrix({&map.position_embeddings});
    for (const model::LayerRefs& refs : map.layers) weights.layers.push_back(layer(refs));
    weights.final_norm = norm(map.final_norm);
    weights.output = config_.tied_embeddings ? weights.word_embeddings : matrix({&map.output});
  }

  uint64_t bytes() const { return bytes_; }
  const std::vector<UploadJob>& jobs() const { return jobs_; }

 private:
  using Refs = std::vector<const WeightRef*>;  // of one shape, placed one after the other

  // An address; only a number to carry on with while there is no base.
  std::byte* place(uint64_t bytes) {
    std::byte* to = base_ == nullptr ? nullptr : base_ + bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return to;
  }

  Number number_of(const Refs& refs) const {
    if (bf16_) return Number::kBfloat16;
    const Dtype stored = refs.front()->stored;
    for (const WeightRef* ref : refs) {
      if (ref->stored != stored) return Number::kFloat32;
    }
    return stored == Dtype::kBfloat16  ? Number::kBfloat16
           : stored == Dtype::kFloat16 ? Number::kFloat16
                                       : Number::kFloat32;
  }

  // `gated`: fc1 of a gated MLP.
  Matrix matrix(const Refs& refs, bool gated = false) {
    Matrix m;
    if (refs.empty() || !refs.front()->present()) return m;
    m.rows = static_cast<int>(refs.front()->rows);
    m.cols = static_cast<int>(refs.front()->cols);
    m.number = number_of(refs);
    m.tiled = bf16_;
    m.gated = bf16_ && gated && m.rows % 16 == 0;
    std::byte* to = place(static_cast<uint64_t>(m.bytes()) * refs.size());
    m.data = to;
    if (to == nullptr) return m;
    const int64_t step = rows_a_job(m.cols * static_cast<int64_t>(number_size(m.number)));
    for (const WeightRef* ref : refs) {
      Matrix one = m;
      one.data = to;
      for (int64_t row = 0; row < ref->rows; row += step) {
        jobs_.push_back({ref, row, std::min(ref->rows, row + step), dtype_of(m.number), to, one, Finish::kNone});
      }
      to += m.bytes();
    }
    return m;
  }

  const float* vector(const Refs& refs, Finish finish) {
    if (refs.empty() || !refs.front()->present()) return nullptr;
    const auto each = static_cast<uint64_t>(refs.front()->elements()) * sizeof(float);
    std::byte* const first = place(each * refs.size());
    std::byte* to = first;
    for (const WeightRef* ref : refs) {
      if (to == nullptr) break;
      jobs_.push_back({ref, 0, ref->rows, Dtype::kFloat32, to, {}, finish});
      to += each;
    }
    return reinterpret_cast<const float*>(first);
  }

  Finish rounding() const { return bf16_ ? Finish::kRound : Finish::kNone; }

  Linear linear(const LinearRef& ref, bool gated = false) {
    return {matrix({&ref.weight}, gated), vector({&ref.bias}, rounding())};
  }

  Linear experts(const std::vector<LinearRef>& refs, bool gated = false) {
    Refs weights;
    Refs biases;
    for (const LinearRef& ref : refs) {
      weights.push_back(&ref.weight);
      biases.push_back(&ref.bias);
    }
    return {matrix(weights, gated), vector(biases, rounding())};
  }

  NormWeights norm(const NormRef& ref) {
    const bool one = config_.norm_gamma_plus_one;
    const Finish gamma =
        bf16_ ? (one ? Finish::kRoundAndAddOne : Finish::kRound) : (one ? Finish::kAddOne : Finish::kNone);
    return {vector({&ref.gamma}, gamma), vector({&ref.beta}, rounding())};
  }

  Layer layer(const model::LayerRefs& refs) {
    const bool gated = config_.activation == model::Activation::kSwiglu;
    Layer layer;
    layer.attention_norm = norm(refs.attention_norm);
    layer.qkv = linear(refs.qkv);
    layer.q_norm = norm(refs.q_norm);
    layer.k_norm = norm(refs.k_norm);
    layer.proj = linear(refs.proj);
    layer.mlp_norm = norm(refs.mlp_norm);
    layer.fc1 = linear(refs.fc1, gated);
    layer.fc2 = linear(refs.fc2);
    layer.router = linear(refs.router);
    layer.expert_bias = vector({&refs.expert_bias}, Finish::kNone);
    layer.expert_fc1 = experts(refs.expert_fc1, gated);
    layer.expert_fc2 = experts(refs.expert_fc2);
    layer.shared_fc1 = linear(refs.shared_fc1, gated);
    layer.shared_fc2 = linear(refs.shared_fc2);
    layer.shared_gate = matrix({&refs.shared_gate});
    return layer;
  }

  const model::ModelConfig& config_;
  const bool bf16_;
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  std::vector<UploadJob> jobs_;
};

}  // namespace

Result<Weights> load_weights(const model::Checkpoint& checkpoint, const model::ModelConfig& config,
                             const Device& device, int threads) {
  Result<model::WeightMap> map = model::map_weights(checkpoint.contents(), config);
  if (!map) return map.status();
  Weights weights;
  Layout layout(config);
  layout.walk(*map, weights, nullptr);
  Result<DeviceBuffer<std::byte>> region = take_memory(layout.bytes(), "weights of " + checkpoint.contents().path);
  if (!region) return region.status();
  weights.region = std::move(*region);
  weights.unused = map->unused;
  check(cudaMemset(weights.region.data(), 0, layout.bytes()), "cudaMemset");  // padding of tiles
  check(cudaDeviceSynchronize(), "cudaMemset");
  layout.walk(*map, weights, weights.region.data());
  if (Status status = upload_all(checkpoint, layout.jobs(), device, threads); !status.ok()) return status;
  return weights;
}

}  // namespace assay::cuda
