#include "tools/bench/work.h"

namespace assay::bench {
namespace {

using model::ModelConfig;

// Elements of matrices of one layer.
struct LayerSizes {
  double attention = 0;  // query-key-value layer and projection
  double dense = 0;      // MLP, or router and shared expert
  double expert = 0;     // one routed expert; 0: none
};

double mlp(const ModelConfig& config, double width) {
  return (config.activation == model::Activation::kSwiglu ? 3.0 : 2.0) * width * config.hidden_size;
}

LayerSizes sizes_of(const ModelConfig& config, size_t layer) {
  const double hidden = config.hidden_size;
  const double heads = config.num_attention_heads * config.kv_channels;
  LayerSizes sizes;
  sizes.attention = hidden * (2 * heads + 2.0 * config.num_query_groups * config.kv_channels);
  if (layer < config.moe_layers.size() && config.moe_layers[layer]) {
    sizes.dense = hidden * config.moe.experts + mlp(config, config.moe.shared_ffn_hidden_size);
    sizes.expert = mlp(config, config.moe.ffn_hidden_size);
  } else {
    sizes.dense = mlp(config, config.ffn_hidden_size);
  }
  return sizes;
}

// Elements over all layers, with `experts` routed experts a mixture.
double layer_elements(const ModelConfig& config, double experts) {
  double all = 0;
  for (int l = 0; l < config.num_layers; ++l) {
    const LayerSizes sizes = sizes_of(config, static_cast<size_t>(l));
    all += sizes.attention + sizes.dense + experts * sizes.expert;
  }
  return all;
}

double table(const ModelConfig& config) { return static_cast<double>(config.vocab_size) * config.hidden_size; }

}  // namespace

uint64_t parameters(const ModelConfig& config) {
  double all = layer_elements(config, config.moe.experts) + table(config) * (config.tied_embeddings ? 1 : 2);
  const double norm = config.hidden_size * (config.norm == model::Norm::kLayerNorm ? 2.0 : 1.0);
  all += norm * (2.0 * config.num_layers + 1);
  if (config.positions == model::Positions::kLearnedAbsolute) {
    all += static_cast<double>(config.max_position_embeddings) * config.hidden_size;
  }
  return static_cast<uint64_t>(all);
}

StepWork decode_work(const ModelConfig& config, double number, double sequences, double position, double experts) {
  StepWork work;
  work.weight_bytes = number * (layer_elements(config, experts) + table(config));
  const double stored = config.arithmetic == model::Arithmetic::kBf16 ? 2 : 4;
  work.cache_bytes =
      sequences * (position + 1) * 2 * config.num_query_groups * config.kv_channels * stored * config.num_layers;
  return work;
}

double prefill_flops(const ModelConfig& config, double tokens) {
  const double linear = 2 * tokens * layer_elements(config, config.moe.topk) + 2 * table(config);
  const double pairs = tokens * (tokens + 1) / 2;  // of a query and a key
  return linear + 4 * pairs * config.num_attention_heads * config.kv_channels * config.num_layers;
}

}  // namespace assay::bench
