#include "backends/cuda/cuda_weights.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/random_weights.h"
#include "backends/cuda/weight_upload.h"
#include "backends/model/checkpoint/model_writer.h"

namespace assay::cuda {
namespace {

using model::Dtype;
using model::LinearRef;
using model::NormRef;
using model::WeightRef;

constexpr uint64_t kAlignment = 256;
constexpr float kScale = 0.02f;  // standard deviation of random weights

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

struct How {
  bool gated = false;    // fc1 of a gated MLP
  float scale = kScale;  // of random numbers
};

// Walks the model twice: without a base address it only adds up, with one it hands out addresses and notes the jobs,
// both those that bring a checkpoint's weights and those that make weights up.
class Layout {
 public:
  explicit Layout(const model::ModelConfig& config)
      : config_(config), bf16_(config.arithmetic == model::Arithmetic::kBf16) {}

  void walk(const model::WeightMap& map, Weights& weights, std::byte* base) {
    base_ = base;
    bytes_ = 0;
    jobs_.clear();
    matrices_.clear();
    vectors_.clear();
    weights.layers.clear();
    weights.word_embeddings = matrix({&map.word_embeddings}, {.scale = config_.tied_embeddings ? kScale : 1.0f});
    weights.position_embeddings = matrix({&map.position_embeddings});
    for (const model::LayerRefs& refs : map.layers) weights.layers.push_back(layer(refs));
    weights.final_norm = norm(map.final_norm);
    weights.output = config_.tied_embeddings ? weights.word_embeddings : matrix({&map.output});
  }

  uint64_t bytes() const { return bytes_; }
  const std::vector<UploadJob>& jobs() const { return jobs_; }
  // Without seeds; each has a stream of its own.
  const std::vector<RandomMatrices>& matrices() const { return matrices_; }
  const std::vector<RandomVector>& vectors() const { return vectors_; }

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

  Matrix matrix(const Refs& refs, const How& how = {}) {
    Matrix m;
    if (refs.empty() || !refs.front()->present()) return m;
    m.rows = static_cast<int>(refs.front()->rows);
    m.cols = static_cast<int>(refs.front()->cols);
    m.number = number_of(refs);
    m.tiled = bf16_;
    m.gated = bf16_ && how.gated && m.rows % 16 == 0;
    std::byte* to = place(static_cast<uint64_t>(m.bytes()) * refs.size());
    m.data = to;
    if (to == nullptr) return m;
    matrices_.push_back({m, static_cast<int64_t>(refs.size()), how.scale, 0, next_stream()});
    const int64_t step = rows_a_job(m.rows, m.cols * static_cast<int64_t>(number_size(m.number)));
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

  // `middle` and `scale` of random numbers, before they are finished.
  const float* vector(const Refs& refs, Finish finish, float middle = 0, float scale = kScale) {
    if (refs.empty() || !refs.front()->present()) return nullptr;
    const auto each = static_cast<uint64_t>(refs.front()->elements()) * sizeof(float);
    std::byte* const first = place(each * refs.size());
    std::byte* to = first;
    if (to == nullptr) return nullptr;
    RandomVector random{.to = reinterpret_cast<float*>(first), .middle = middle, .scale = scale};
    random.count = static_cast<int64_t>(each * refs.size() / sizeof(float));
    random.rounded = finish == Finish::kRound || finish == Finish::kRoundAndAddOne;
    random.added = finish == Finish::kAddOne || finish == Finish::kRoundAndAddOne ? 1.0f : 0.0f;
    random.stream = next_stream();
    vectors_.push_back(random);
    for (const WeightRef* ref : refs) {
      jobs_.push_back({ref, 0, ref->rows, Dtype::kFloat32, to, {}, finish});
      to += each;
    }
    return reinterpret_cast<const float*>(first);
  }

  Finish rounding() const { return bf16_ ? Finish::kRound : Finish::kNone; }

  Linear linear(const LinearRef& ref, bool gated = false) {
    return {matrix({&ref.weight}, {.gated = gated}), vector({&ref.bias}, rounding())};
  }

  Linear experts(const std::vector<LinearRef>& refs, bool gated = false) {
    Refs weights;
    Refs biases;
    for (const LinearRef& ref : refs) {
      weights.push_back(&ref.weight);
      biases.push_back(&ref.bias);
    }
    return {matrix(weights, {.gated = gated}), vector(biases, rounding())};
  }

  NormWeights norm(const NormRef& ref) {
    const bool one = config_.norm_gamma_plus_one;
    const Finish gamma =
        bf16_ ? (one ? Finish::kRoundAndAddOne : Finish::kRound) : (one ? Finish::kAddOne : Finish::kNone);
    return {vector({&ref.gamma}, gamma, one ? 0.0f : 1.0f), vector({&ref.beta}, rounding())};
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
    layer.expert_bias = vector({&refs.expert_bias}, Finish::kNone, 0, 0);
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
  std::vector<RandomMatrices> matrices_;
  std::vector<RandomVector> vectors_;

  uint64_t next_stream() const { return matrices_.size() + vectors_.size(); }
};

// Takes the region of `weights` and places everything in it. Padding of tiles is zero.
Status place(Layout& layout, const model::WeightMap& map, const std::string& what, Weights& weights) {
  layout.walk(map, weights, nullptr);
  Result<DeviceBuffer<std::byte>> region = take_memory(layout.bytes(), what);
  if (!region) return region.status();
  weights.region = std::move(*region);
  weights.unused = map.unused;
  check(cudaMemset(weights.region.data(), 0, layout.bytes()), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaMemset");
  layout.walk(map, weights, weights.region.data());
  return {};
}

}  // namespace

Result<Weights> load_weights(const model::Checkpoint& checkpoint, const model::ModelConfig& config,
                             const Device& device, int threads) {
  Result<model::WeightMap> map = model::map_weights(checkpoint.contents(), config);
  if (!map) return map.status();
  Weights weights;
  Layout layout(config);
  if (Status status = place(layout, *map, "weights of " + checkpoint.contents().path, weights); !status.ok()) {
    return status;
  }
  if (Status status = upload_all(checkpoint, layout.jobs(), device, threads); !status.ok()) return status;
  return weights;
}

Result<Weights> random_weights(const model::ModelConfig& config, uint64_t seed) {
  model::CheckpointSpec spec;
  spec.model = config;
  const auto tensors = model::plan_model(spec);
  if (!tensors) return tensors.status();
  model::CheckpointContents contents;
  for (const model::TensorToWrite& tensor : *tensors) {
    model::TensorInfo& info = contents.tensors.emplace_back();
    info.key = tensor.key;
    info.shape = tensor.shape;
    info.dtype = config.arithmetic == model::Arithmetic::kBf16 ? Dtype::kBfloat16 : Dtype::kFloat32;
  }
  std::ranges::sort(contents.tensors, {}, &model::TensorInfo::key);
  const Result<model::WeightMap> map = model::map_weights(contents, config);
  if (!map) return map.status();
  Weights weights;
  Layout layout(config);
  if (Status status = place(layout, *map, "random weights", weights); !status.ok()) return status;
  for (RandomMatrices job : layout.matrices()) {
    job.seed = seed;
    fill_random(job, nullptr);
  }
  for (RandomVector job : layout.vectors()) {
    job.seed = seed;
    fill_random(job, nullptr);
  }
  check(cudaDeviceSynchronize(), "random weights");
  return weights;
}

}  // namespace assay::cuda
