#include "backends/model/config/resolve_parts.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace assay::model {

void ModelBuilder::fail(const std::string& message) {
  if (status_.ok()) status_ = invalid(message);
}

int ModelBuilder::required(std::string_view name, const char* option) {
  const std::optional<int> value = args_.integer(name);
  if (!value && args_.status().ok())
    fail(std::string(option) + " is missing: neither MODEL_ARGS nor the checkpoint gives it");
  return value.value_or(0);
}

void ModelBuilder::came_from(const char* field, std::initializer_list<std::string_view> sources) {
  FieldOrigin origin{field, {}, ArgOrigin::kDefault, {}};
  for (const std::string_view source : sources) {
    if (args_.origin(source) == ArgOrigin::kDefault) continue;
    origin.origin = args_.origin(source);
    origin.source = source;
    break;
  }
  model_.origins.push_back(std::move(origin));
}

Status ModelBuilder::build() {
  build_sizes();
  if (status_.ok() && args_.status().ok()) build_attention();
  if (status_.ok()) build_norm_and_activation();
  if (status_.ok()) build_vocabulary();
  if (status_.ok()) build_moe();
  if (!args_.status().ok()) return args_.status();
  if (status_.ok()) fill_values();
  return status_;
}

void ModelBuilder::build_sizes() {
  const bool by_encoder = !args_.integer("num_layers") && args_.integer("encoder_num_layers");
  config_.num_layers = by_encoder ? args_.integer("encoder_num_layers", 0) : required("num_layers", "--num-layers");
  config_.hidden_size = required("hidden_size", "--hidden-size");
  config_.num_attention_heads = required("num_attention_heads", "--num-attention-heads");
  config_.max_position_embeddings = required("max_position_embeddings", "--max-position-embeddings");
  const int64_t hidden = config_.hidden_size;
  const int64_t usual =
      args_.flag("swiglu") ? static_cast<int64_t>(static_cast<double>(4 * hidden * 2) / 3 / 64) * 64 : 4 * hidden;
  config_.ffn_hidden_size =
      args_.integer("ffn_hidden_size", static_cast<int>(std::min<int64_t>(usual, std::numeric_limits<int>::max())));
  came_from("num_layers", {"num_layers", "encoder_num_layers"});
  came_from("hidden_size", {"hidden_size"});
  came_from("ffn_hidden_size", {"ffn_hidden_size"});
  came_from("num_attention_heads", {"num_attention_heads"});
  came_from("max_position_embeddings", {"max_position_embeddings"});
}

void ModelBuilder::build_attention() {
  const int heads = config_.num_attention_heads;
  if (const std::optional<int> channels = args_.integer("kv_channels")) {
    config_.kv_channels = *channels;
  } else if (heads <= 0 || config_.hidden_size % heads != 0) {
    fail("hidden_size " + std::to_string(config_.hidden_size) + " is no multiple of num_attention_heads " +
         std::to_string(heads) + ": give --kv-channels");
  } else {
    config_.kv_channels = config_.hidden_size / heads;
  }
  const bool grouped = args_.flag("group_query_attention");
  config_.num_query_groups = grouped ? args_.integer("num_query_groups", 1) : heads;
  const std::string positions =
      args_.flag("use_rotary_position_embeddings") ? "rope" : args_.text("position_embedding_type", "learned_absolute");
  config_.positions = positions == "rope"   ? Positions::kRope
                      : positions == "none" ? Positions::kNone
                                            : Positions::kLearnedAbsolute;
  if (!args_.flag("add_position_embedding", true) && positions != "rope") {
    fail("--no-position-embedding with --position-embedding-type " + positions +
         ": write --position-embedding-type none");
  }
  config_.rotary_base = args_.number("rotary_base", 10000);
  config_.rotary_percent = args_.number("rotary_percent", 1.0);
  config_.rotary_interleaved = args_.flag("rotary_interleaved");
  config_.qk_layernorm = args_.flag("qk_layernorm");
  came_from("kv_channels", {"kv_channels"});
  came_from("num_query_groups", {grouped ? "num_query_groups" : "group_query_attention"});
  came_from("positions", {args_.flag("use_rotary_position_embeddings") ? "use_rotary_position_embeddings"
                                                                       : "position_embedding_type"});
  came_from("rotary_base", {"rotary_base"});
  came_from("rotary_percent", {"rotary_percent"});
  came_from("rotary_interleaved", {"rotary_interleaved"});
  came_from("qk_layernorm", {"qk_layernorm"});
}

void ModelBuilder::build_norm_and_activation() {
  const std::string norm = args_.text("normalization", "LayerNorm");
  if (norm != "LayerNorm" && norm != "RMSNorm") fail("normalization '" + norm + "' is neither LayerNorm nor RMSNorm");
  config_.norm = norm == "RMSNorm" ? Norm::kRmsNorm : Norm::kLayerNorm;
  config_.norm_epsilon = args_.number("layernorm_epsilon", 1e-5);
  config_.norm_gamma_plus_one = args_.flag("layernorm_zero_centered_gamma");
  config_.linear_bias = args_.flag("add_bias_linear", true);
  config_.qkv_bias = config_.linear_bias || args_.flag("add_qkv_bias");
  const bool swiglu = args_.flag("swiglu"), squared = args_.flag("squared_relu");
  if (swiglu && squared) fail("--swiglu and --squared-relu exclude each other");
  const bool fused_gelu = config_.linear_bias && args_.flag("bias_gelu_fusion", true);
  config_.activation = swiglu       ? Activation::kSwiglu
                       : squared    ? Activation::kSquaredRelu
                       : fused_gelu ? Activation::kGeluTanh
                                    : Activation::kGeluErf;
  config_.arithmetic = args_.flag("bf16") ? Arithmetic::kBf16 : Arithmetic::kFp32;
  came_from("norm", {"normalization"});
  came_from("norm_epsilon", {"layernorm_epsilon"});
  came_from("norm_gamma_plus_one", {"layernorm_zero_centered_gamma"});
  came_from("activation", {swiglu                ? "swiglu"
                           : squared             ? "squared_relu"
                           : fused_gelu          ? "bias_gelu_fusion"
                           : config_.linear_bias ? "bias_gelu_fusion"
                                                 : "add_bias_linear"});
  came_from("linear_bias", {"add_bias_linear"});
  came_from("qkv_bias", {config_.linear_bias ? "add_bias_linear" : "add_qkv_bias"});
  came_from("arithmetic", {"bf16"});
}

// Rows of the output layer: padded_vocab_size, else the tokenizer's vocabulary rounded up to a multiple of
// make_vocab_size_divisible_by * tensor_model_parallel_size.
void ModelBuilder::build_vocabulary() {
  config_.tied_embeddings = !args_.flag("untie_embeddings_and_output_weights");
  const std::optional<int> padded = args_.integer("padded_vocab_size");
  const int64_t multiple =
      int64_t{args_.integer("make_vocab_size_divisible_by", 128)} * args_.integer("tensor_model_parallel_size", 1);
  if (padded) {
    config_.vocab_size = *padded;
  } else if (!args_.flag("pad_vocab_size", true)) {
    fail("--no-pad-vocab-size needs --padded-vocab-size");
  } else if (multiple <= 0 || tokenizer_vocab_size_ <= 0) {
    fail("the vocabulary of " + std::to_string(tokenizer_vocab_size_) + " ids cannot be padded to a multiple of " +
         std::to_string(multiple) + " (make_vocab_size_divisible_by times tensor_model_parallel_size)");
  } else {
    const int64_t rows = (tokenizer_vocab_size_ + multiple - 1) / multiple * multiple;
    if (rows > std::numeric_limits<int>::max()) fail("a vocabulary of " + std::to_string(rows) + " rows is too large");
    config_.vocab_size = static_cast<int>(rows);
  }
  came_from("vocab_size", {"padded_vocab_size", "vocab_size"});
  came_from("tied_embeddings", {"untie_embeddings_and_output_weights"});
}

void ModelBuilder::build_moe() {
  MoeConfig& moe = config_.moe;
  moe.experts = args_.integer("num_experts", 0);
  came_from("moe_layers", {"num_experts"});
  if (moe.experts <= 0) {
    if (moe.experts < 0) fail("num_experts " + std::to_string(moe.experts) + " is negative");
    moe = {};
    config_.moe_layers.assign(static_cast<size_t>(std::max(0, std::min(config_.num_layers, 1 << 20))), false);
    return;
  }
  moe.topk = args_.integer("moe_router_topk", 2);
  moe.ffn_hidden_size = args_.integer("moe_ffn_hidden_size", config_.ffn_hidden_size);
  moe.shared_ffn_hidden_size = args_.integer("moe_shared_expert_intermediate_size", 0);
  moe.shared_gate = moe.shared_ffn_hidden_size > 0 && args_.flag("moe_shared_expert_gate");
  const std::string score = args_.text("moe_router_score_function", "softmax");
  moe.score = score == "sigmoid" ? RouterScore::kSigmoid : RouterScore::kSoftmax;
  moe.pre_softmax = args_.flag("moe_router_pre_softmax");
  moe.expert_bias = args_.flag("moe_router_enable_expert_bias");
  moe.group_topk = args_.integer("moe_router_group_topk", 0);
  moe.groups = moe.group_topk == 0 ? 0 : args_.integer("moe_router_num_groups", 0);
  moe.scaling_factor = args_.number("moe_router_topk_scaling_factor", 0);
  if (moe.scaling_factor == 0) moe.scaling_factor = 1;  // Megatron takes 0 for unset
  moe.router_fp32 = args_.value("moe_router_dtype") != nullptr;
  moe.router_bias = config_.linear_bias;
  if (moe.expert_bias && moe.score != RouterScore::kSigmoid) {
    fail("--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid");
  }
  if (moe.topk == 1 && moe.score == RouterScore::kSoftmax && !moe.pre_softmax) {
    fail("--moe-router-topk 1 with softmax scores needs --moe-router-pre-softmax");
  }
  if (moe.group_topk != 0 && moe.groups == 0) fail("--moe-router-group-topk needs --moe-router-num-groups");
  if (moe.shared_ffn_hidden_size > 0 && config_.linear_bias) fail("a shared expert needs --disable-bias-linear");
  build_moe_layers();
  if (config_.any_moe() && config_.activation == Activation::kGeluTanh) {
    fail("experts with the fused GELU do not exist in Megatron-LM: add --no-bias-gelu-fusion or --disable-bias-linear");
  }
  came_from("moe.experts", {"num_experts"});
  came_from("moe.topk", {"moe_router_topk"});
  came_from("moe.ffn_hidden_size", {"moe_ffn_hidden_size", "ffn_hidden_size"});
  came_from("moe.shared_ffn_hidden_size", {"moe_shared_expert_intermediate_size"});
  came_from("moe.shared_gate", {"moe_shared_expert_gate"});
  came_from("moe.score", {"moe_router_score_function"});
  came_from("moe.pre_softmax", {"moe_router_pre_softmax"});
  came_from("moe.expert_bias", {"moe_router_enable_expert_bias"});
  came_from("moe.groups", {"moe_router_num_groups"});
  came_from("moe.group_topk", {"moe_router_group_topk"});
  came_from("moe.scaling_factor", {"moe_router_topk_scaling_factor"});
  came_from("moe.router_fp32", {"moe_router_dtype"});
  came_from("moe.router_bias", {"add_bias_linear"});
}

// moe_layer_freq n: layer i is a mixture of experts iff i mod n = 0; a list says so for each layer.
void ModelBuilder::build_moe_layers() {
  const auto layers = static_cast<size_t>(std::max(0, std::min(config_.num_layers, 1 << 20)));
  if (args_.origin("moe_layer_freq") != ArgOrigin::kDefault) {
    model_.origins.pop_back();
    came_from("moe_layers", {"moe_layer_freq"});
  }
  const ArgValue* freq = args_.value("moe_layer_freq");
  if (freq != nullptr && std::holds_alternative<ArgList>(freq->value)) {
    const ArgList& list = std::get<ArgList>(freq->value);
    if (list.size() != layers) {
      return fail("moe_layer_freq describes " + std::to_string(list.size()) + " layers, num_layers is " +
                  std::to_string(layers));
    }
    for (const ArgValue& item : list) {
      const std::string text = to_text(item);
      if (text != "0" && text != "1")
        return fail("moe_layer_freq holds " + text + "; 0 (dense) and 1 (experts) are expected");
      config_.moe_layers.push_back(text == "1");
    }
    return;
  }
  const int every = args_.integer("moe_layer_freq", 1);
  if (every < 1) return fail("moe_layer_freq " + std::to_string(every) + " is not positive");
  for (size_t i = 0; i < layers; ++i) config_.moe_layers.push_back(i % static_cast<size_t>(every) == 0);
}

// Values as to_json writes them, in its order.
void ModelBuilder::fill_values() {
  const auto json = nlohmann::ordered_json::parse(to_json(config_));
  std::vector<FieldOrigin> ordered;
  const auto add = [&](const std::string& field, const nlohmann::ordered_json& value) {
    FieldOrigin origin{field, {}, ArgOrigin::kDefault, {}};
    for (const FieldOrigin& known : model_.origins) {
      if (known.field == field) origin = known;
    }
    origin.value = value.is_string() ? value.get<std::string>() : value.dump();
    ordered.push_back(std::move(origin));
  };
  for (const auto& [key, value] : json.items()) {
    if (key != "moe") {
      add(key, value);
    } else if (config_.moe.experts > 0) {
      for (const auto& [inner, inner_value] : value.items()) add("moe." + inner, inner_value);
    }
  }
  model_.origins = std::move(ordered);
}

}  // namespace assay::model
