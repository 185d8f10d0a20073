#include "backends/reference/reference_weights.h"

#include <utility>

#include "backends/reference/arithmetic/formats.h"

namespace assay::reference {
namespace {

using model::LinearRef;
using model::NormRef;
using model::WeightRef;

class Loader {
 public:
  Loader(const model::Checkpoint& checkpoint, const model::ModelConfig& config)
      : checkpoint_(checkpoint), config_(config) {}

  std::vector<float> values(const WeightRef& ref, bool rounded = true) {
    std::vector<float> data;
    if (!ref.present() || !status.ok()) return data;
    data.resize(static_cast<size_t>(ref.elements()));
    status = model::read_weight(checkpoint_, ref, model::Dtype::kFloat32, data.data());
    if (rounded && config_.arithmetic == model::Arithmetic::kBf16) {
      for (float& v : data) v = arithmetic::round_bf16(v);
    }
    bytes += data.size() * sizeof(float);
    return data;
  }

  Linear linear(const LinearRef& ref) {
    return {static_cast<size_t>(ref.weight.rows), static_cast<size_t>(ref.weight.cols), values(ref.weight),
            values(ref.bias)};
  }

  NormWeights norm(const NormRef& ref) {
    NormWeights result{values(ref.gamma), values(ref.beta)};
    if (config_.norm_gamma_plus_one) {
      for (float& v : result.gamma) v = v + 1.0f;
    }
    return result;
  }

  Layer layer(const model::LayerRefs& refs) {
    Layer layer;
    layer.attention_norm = norm(refs.attention_norm);
    layer.q_norm = norm(refs.q_norm);
    layer.k_norm = norm(refs.k_norm);
    layer.mlp_norm = norm(refs.mlp_norm);
    layer.qkv = linear(refs.qkv);
    layer.proj = linear(refs.proj);
    layer.fc1 = linear(refs.fc1);
    layer.fc2 = linear(refs.fc2);
    layer.router = linear(refs.router);
    layer.expert_bias = values(refs.expert_bias, false);
    for (const LinearRef& ref : refs.expert_fc1) layer.expert_fc1.push_back(linear(ref));
    for (const LinearRef& ref : refs.expert_fc2) layer.expert_fc2.push_back(linear(ref));
    layer.shared_fc1 = linear(refs.shared_fc1);
    layer.shared_fc2 = linear(refs.shared_fc2);
    layer.shared_gate = values(refs.shared_gate);
    return layer;
  }

  Status status;
  uint64_t bytes = 0;

 private:
  const model::Checkpoint& checkpoint_;
  const model::ModelConfig& config_;
};

}  // namespace

Result<Weights> load_weights(const model::Checkpoint& checkpoint, const model::ModelConfig& config) {
  Result<model::WeightMap> map = model::map_weights(checkpoint.contents(), config);
  if (!map) return map.status();
  Loader loader(checkpoint, config);
  Weights weights;
  weights.word_embeddings = loader.values(map->word_embeddings);
  weights.position_embeddings = loader.values(map->position_embeddings);
  for (const model::LayerRefs& refs : map->layers) weights.layers.push_back(loader.layer(refs));
  weights.final_norm = loader.norm(map->final_norm);
  weights.output = loader.linear({map->output, {}});
  weights.bytes = loader.bytes;
  weights.unused = map->unused;
  if (!loader.status.ok()) return loader.status;
  return weights;
}

}  // namespace assay::reference
