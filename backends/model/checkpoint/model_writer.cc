#include "backends/model/checkpoint/model_writer.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "backends/model/checkpoint/weight_stream.h"

namespace assay::model {
namespace {

using Shape = std::vector<int64_t>;

enum class Role { kWeight, kResidual, kBias, kGamma, kExpertBias };

bool gated(const ModelConfig& model) { return model.activation == Activation::kSwiglu; }

class Planner {
 public:
  explicit Planner(const CheckpointSpec& spec) : spec_(spec), model_(spec.model) {}

  Result<std::vector<TensorToWrite>> run();

 private:
  // Where the layers of a run of add() calls live: all of them (stacked) or one.
  struct Layers {
    std::string prefix;
    int64_t count;  // 0: no layer axis
    bool moe;
  };

  Status check() const;
  void add(const std::string& key, Shape shape, Role role, Shape counts = {});
  void add_layer(const Layers& layers, const std::string& name, Shape shape, Role role, Shape counts = {});
  void norm(const Layers& layers, const std::string& name, int64_t size);
  void attention(const Layers& layers);
  void mlp(const Layers& layers, const std::string& name, int64_t width, bool biases);
  void mixture(const Layers& layers);
  void apply_rules(TensorToWrite& tensor) const;

  const CheckpointSpec& spec_;
  const ModelConfig& model_;
  std::vector<TensorToWrite> out_;
  std::map<std::tuple<double, double, Dtype>, WeightTable> tables_;  // by mean and standard deviation
};

Status Planner::check() const {
  const auto positive = [](std::initializer_list<int> values) { return std::min(values) > 0; };
  if (!positive({model_.num_layers, model_.hidden_size, model_.num_attention_heads, model_.num_query_groups,
                 model_.kv_channels, model_.vocab_size, model_.max_position_embeddings})) {
    return invalid("model: layers, hidden size, heads, groups, channels, vocabulary and positions must be positive");
  }
  if (model_.num_attention_heads % model_.num_query_groups != 0) {
    return invalid(fmt::format("model: {} attention heads do not divide into {} query groups",
                               model_.num_attention_heads, model_.num_query_groups));
  }
  if (model_.moe_layers.size() != static_cast<size_t>(model_.num_layers)) {
    return invalid(
        fmt::format("model: {} layers, but the MoE pattern has {}", model_.num_layers, model_.moe_layers.size()));
  }
  const bool moe = std::ranges::find(model_.moe_layers, true) != model_.moe_layers.end();
  const bool dense = std::ranges::find(model_.moe_layers, false) != model_.moe_layers.end();
  if (dense && model_.ffn_hidden_size <= 0) return invalid("model: dense layers need a positive ffn width");
  if (!moe) return {};
  if (!positive({model_.moe.experts, model_.moe.topk, model_.moe.ffn_hidden_size}) ||
      model_.moe.topk > model_.moe.experts) {
    return invalid(fmt::format("model: {} experts of width {}, top-{}: impossible", model_.moe.experts,
                               model_.moe.ffn_hidden_size, model_.moe.topk));
  }
  if (model_.moe.shared_ffn_hidden_size > 0 && model_.linear_bias) {
    return invalid("model: Megatron-LM has no shared expert with biases; leave one out");
  }
  return {};
}

void Planner::apply_rules(TensorToWrite& tensor) const {
  for (const ChunkRule& rule : spec_.chunks) {
    if (fnmatch(rule.glob.c_str(), tensor.key.c_str(), 0) != 0) continue;
    const auto rank = static_cast<int>(tensor.shape.size());
    const int axis = rule.axis < 0 ? rank + rule.axis : rule.axis;
    if (axis < 0 || axis >= rank) continue;  // the glob also met tensors of another rank
    const auto d = static_cast<size_t>(axis);
    tensor.chunk_counts[d] = std::clamp<int64_t>(rule.count, 1, std::max<int64_t>(tensor.shape[d], 1));
  }
}

void Planner::add(const std::string& key, Shape shape, Role role, Shape counts) {
  counts.resize(shape.size(), 1);
  if (!spec_.default_chunks) counts.assign(shape.size(), 1);
  TensorToWrite tensor{
      key, std::move(shape), role == Role::kExpertBias ? Dtype::kFloat32 : spec_.dtype, std::move(counts), {}};
  apply_rules(tensor);
  const double mean = role == Role::kGamma && !model_.norm_gamma_plus_one ? 1.0 : 0.0;
  const double std = role == Role::kResidual ? spec_.residual_std.value_or(spec_.std) : spec_.std;
  WeightTable& table = tables_[{mean, std, tensor.dtype}];
  if (table == nullptr) table = make_weight_table(mean, std, tensor.dtype);
  const auto stream = std::make_shared<const WeightStream>(spec_.seed, key, table, tensor.dtype);
  tensor.fill = [stream](int64_t first, int64_t count, void* out) { stream->fill(first, count, out); };
  out_.push_back(std::move(tensor));
}

void Planner::add_layer(const Layers& layers, const std::string& name, Shape shape, Role role, Shape counts) {
  counts.resize(shape.size(), 1);
  if (layers.count > 0) {
    shape.insert(shape.begin(), layers.count);
    counts.insert(counts.begin(), layers.count);
  }
  add(layers.prefix + name, std::move(shape), role, std::move(counts));
}

void Planner::norm(const Layers& layers, const std::string& name, int64_t size) {
  add_layer(layers, name + "weight", {size}, Role::kGamma);
  if (model_.norm == Norm::kLayerNorm) add_layer(layers, name + "bias", {size}, Role::kBias);
}

void Planner::attention(const Layers& layers) {
  const int64_t hidden = model_.hidden_size;
  const int64_t query = int64_t{model_.num_attention_heads} * model_.kv_channels;
  const int64_t rows = query + int64_t{2} * model_.num_query_groups * model_.kv_channels;
  norm(layers, "self_attention.linear_qkv.layer_norm_", hidden);
  add_layer(layers, "self_attention.linear_proj.weight", {hidden, query}, Role::kResidual);
  if (model_.linear_bias) add_layer(layers, "self_attention.linear_proj.bias", {hidden}, Role::kBias);
  add_layer(layers, "self_attention.linear_qkv.weight", {rows, hidden}, Role::kWeight);
  if (model_.has_qkv_bias()) add_layer(layers, "self_attention.linear_qkv.bias", {rows}, Role::kBias);
  if (model_.qk_layernorm) {
    norm(layers, "self_attention.q_layernorm.", model_.kv_channels);
    norm(layers, "self_attention.k_layernorm.", model_.kv_channels);
  }
}

void Planner::mlp(const Layers& layers, const std::string& name, int64_t width, bool biases) {
  const int64_t parts = gated(model_) ? 2 : 1;
  add_layer(layers, name + "linear_fc1.weight", {parts * width, model_.hidden_size}, Role::kWeight, {parts});
  if (biases) add_layer(layers, name + "linear_fc1.bias", {parts * width}, Role::kBias, {parts});
  add_layer(layers, name + "linear_fc2.weight", {model_.hidden_size, width}, Role::kResidual);
  if (biases) add_layer(layers, name + "linear_fc2.bias", {model_.hidden_size}, Role::kBias);
}

void Planner::mixture(const Layers& layers) {
  const MoeConfig& moe = model_.moe;
  const int64_t experts = moe.experts;
  const int64_t hidden = model_.hidden_size;
  const int64_t width = moe.ffn_hidden_size;
  const int64_t parts = gated(model_) ? 2 : 1;
  const std::string prefix = "mlp.experts.experts.";
  norm(layers, spec_.te_names ? "pre_mlp_layernorm." : "mlp.linear_fc1.layer_norm_", hidden);
  add_layer(layers, "mlp.router.weight", {experts, hidden}, Role::kWeight);
  if (moe.router_bias) add_layer(layers, "mlp.router.bias", {experts}, Role::kBias);
  if (moe.expert_bias) add_layer(layers, "mlp.router.expert_bias", {experts}, Role::kExpertBias);
  add_layer(layers, prefix + "linear_fc1.weight", {experts, parts * width, hidden}, Role::kWeight, {experts, parts});
  if (model_.linear_bias) {
    add_layer(layers, prefix + "linear_fc1.bias", {experts, parts * width}, Role::kBias, {experts, parts});
  }
  add_layer(layers, prefix + "linear_fc2.weight", {experts, hidden, width}, Role::kResidual, {experts});
  if (model_.linear_bias) add_layer(layers, prefix + "linear_fc2.bias", {experts, hidden}, Role::kBias, {experts});
  if (moe.shared_ffn_hidden_size > 0) {
    mlp(layers, "mlp.shared_experts.", moe.shared_ffn_hidden_size, false);
    if (moe.shared_gate) add_layer(layers, "mlp.shared_experts.gate_weight", {1, hidden}, Role::kWeight);
  }
}

Result<std::vector<TensorToWrite>> Planner::run() {
  if (Status s = check(); !s.ok()) return s;
  const int64_t hidden = model_.hidden_size;
  add("embedding.word_embeddings.weight", {model_.vocab_size, hidden}, Role::kWeight);
  if (model_.positions == Positions::kLearnedAbsolute) {
    add("embedding.position_embeddings.weight", {model_.max_position_embeddings, hidden}, Role::kWeight);
  }
  const bool mixed = std::ranges::adjacent_find(model_.moe_layers, std::not_equal_to<>()) != model_.moe_layers.end();
  std::vector<Layers> all;
  if (mixed || spec_.per_layer_keys) {
    for (int i = 0; i < model_.num_layers; ++i) {
      all.push_back({fmt::format("decoder.layers.{}.", i), 0, model_.moe_layers[static_cast<size_t>(i)]});
    }
  } else {
    all.push_back({"decoder.layers.", model_.num_layers, model_.moe_layers.front()});
  }
  for (const Layers& layers : all) {
    attention(layers);
    if (layers.moe) {
      mixture(layers);
    } else {
      norm(layers, "mlp.linear_fc1.layer_norm_", hidden);
      mlp(layers, "mlp.", model_.ffn_hidden_size, model_.linear_bias);
    }
  }
  norm({"decoder.", 0, false}, "final_layernorm.", hidden);
  if (!model_.tied_embeddings) add("output_layer.weight", {model_.vocab_size, hidden}, Role::kWeight);
  return std::move(out_);
}

}  // namespace

Result<std::vector<TensorToWrite>> plan_model(const CheckpointSpec& spec) { return Planner(spec).run(); }

Status write_checkpoint(const CheckpointSpec& spec, const std::string& folder) {
  Result<std::vector<TensorToWrite>> tensors = plan_model(spec);
  if (!tensors.ok()) return tensors.status();
  return write_torch_dist(folder, *tensors, model_args(spec), spec.write);
}

}  // namespace assay::model
