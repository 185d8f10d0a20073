#include "backends/model/config/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace assay::model {
namespace {

using Json = nlohmann::ordered_json;

template <class Enum>
struct EnumName {
  Enum value;
  const char* name;
};
template <class Enum>
EnumName(Enum, const char*) -> EnumName<Enum>;

constexpr std::array kArithmetics = {EnumName{Arithmetic::kFp32, "fp32"}, EnumName{Arithmetic::kBf16, "bf16"}};
constexpr std::array kPositions = {EnumName{Positions::kLearnedAbsolute, "learned_absolute"},
                                   EnumName{Positions::kRope, "rope"}, EnumName{Positions::kNone, "none"}};
constexpr std::array kNorms = {EnumName{Norm::kLayerNorm, "LayerNorm"}, EnumName{Norm::kRmsNorm, "RMSNorm"}};
constexpr std::array kActivations = {
    EnumName{Activation::kSwiglu, "swiglu"}, EnumName{Activation::kSquaredRelu, "squared_relu"},
    EnumName{Activation::kGeluErf, "gelu_erf"}, EnumName{Activation::kGeluTanh, "gelu_tanh"}};
constexpr std::array kScores = {EnumName{RouterScore::kSoftmax, "softmax"}, EnumName{RouterScore::kSigmoid, "sigmoid"}};

constexpr const auto& names_of(Arithmetic) { return kArithmetics; }
constexpr const auto& names_of(Positions) { return kPositions; }
constexpr const auto& names_of(Norm) { return kNorms; }
constexpr const auto& names_of(Activation) { return kActivations; }
constexpr const auto& names_of(RouterScore) { return kScores; }

// The fields in the order of the JSON text. `visit(name, field)`.
template <class Config, class Visit>
void visit_moe(Config& moe, Visit&& visit) {
  visit("experts", moe.experts);
  visit("topk", moe.topk);
  visit("ffn_hidden_size", moe.ffn_hidden_size);
  visit("shared_ffn_hidden_size", moe.shared_ffn_hidden_size);
  visit("shared_gate", moe.shared_gate);
  visit("score", moe.score);
  visit("pre_softmax", moe.pre_softmax);
  visit("expert_bias", moe.expert_bias);
  visit("groups", moe.groups);
  visit("group_topk", moe.group_topk);
  visit("scaling_factor", moe.scaling_factor);
  visit("router_fp32", moe.router_fp32);
  visit("router_bias", moe.router_bias);
}

template <class Config, class Visit>
void visit_config(Config& config, Visit&& visit) {
  visit("num_layers", config.num_layers);
  visit("hidden_size", config.hidden_size);
  visit("ffn_hidden_size", config.ffn_hidden_size);
  visit("num_attention_heads", config.num_attention_heads);
  visit("num_query_groups", config.num_query_groups);
  visit("kv_channels", config.kv_channels);
  visit("vocab_size", config.vocab_size);
  visit("max_position_embeddings", config.max_position_embeddings);
  visit("positions", config.positions);
  visit("rotary_base", config.rotary_base);
  visit("rotary_percent", config.rotary_percent);
  visit("rotary_interleaved", config.rotary_interleaved);
  visit("norm", config.norm);
  visit("norm_epsilon", config.norm_epsilon);
  visit("norm_gamma_plus_one", config.norm_gamma_plus_one);
  visit("qk_layernorm", config.qk_layernorm);
  visit("activation", config.activation);
  visit("linear_bias", config.linear_bias);
  visit("qkv_bias", config.qkv_bias);
  visit("tied_embeddings", config.tied_embeddings);
  visit("arithmetic", config.arithmetic);
  visit("moe_layers", config.moe_layers);
  visit("moe", config.moe);
}

struct Writer {
  Json& object;
  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (std::is_same_v<T, MoeConfig>) {
      Json moe = Json::object();
      visit_moe(value, Writer{moe});
      object[name] = std::move(moe);
    } else if constexpr (std::is_enum_v<T>) {
      for (const auto& known : names_of(value)) {
        if (known.value == value) object[name] = known.name;
      }
    } else {
      object[name] = value;
    }
  }
};

// Takes the fields out of `object`; `status` keeps the first failure.
struct Reader {
  Json& object;
  std::string prefix;
  Status& status;

  void fail(const std::string& name, const std::string& what) {
    if (status.ok()) status = invalid("model config: " + prefix + name + ": " + what);
  }

  template <class T>
  void operator()(const char* name, T& value) {
    const auto found = object.find(name);
    if (found == object.end()) return fail(name, "missing");
    read(name, *found, value);
    object.erase(found);
  }

  void read(const char* name, Json& json, int& value) {
    if (!json.is_number_integer()) return fail(name, "an integer is expected, not " + json.dump());
    const bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= std::numeric_limits<int>::max()
                                                : json.get<int64_t>() >= std::numeric_limits<int>::min();
    if (!fits) return fail(name, json.dump() + " does not fit in 32 bits");
    value = json.get<int>();
  }
  void read(const char* name, Json& json, double& value) {
    if (!json.is_number()) return fail(name, "a number is expected, not " + json.dump());
    value = json.get<double>();
    if (!std::isfinite(value)) fail(name, "not finite");
  }
  void read(const char* name, Json& json, bool& value) {
    if (!json.is_boolean()) return fail(name, "true or false is expected, not " + json.dump());
    value = json.get<bool>();
  }
  void read(const char* name, Json& json, std::vector<bool>& value) {
    if (!json.is_array()) return fail(name, "a list of true and false is expected");
    value.clear();
    for (const Json& item : json) {
      if (!item.is_boolean()) return fail(name, "a list of true and false is expected");
      value.push_back(item.get<bool>());
    }
  }
  void read(const char* name, Json& json, MoeConfig& value) {
    if (!json.is_object()) return fail(name, "an object is expected");
    Reader inner{json, prefix + name + ".", status};
    visit_moe(value, inner);
    inner.refuse_rest();
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(const char* name, Json& json, Enum& value) {
    std::string all;
    for (const auto& known : names_of(value)) {
      all += (all.empty() ? "" : ", ") + std::string(known.name);
      if (json != known.name) continue;
      value = known.value;
      return;
    }
    fail(name, json.dump() + " is none of " + all);
  }

  void refuse_rest() {
    if (!object.empty()) fail(object.begin().key(), "unknown field");
  }
};

Status refuse(const std::string& what) { return invalid("model config: " + what); }

std::string text(int value) { return std::to_string(value); }

Status validate_moe(const ModelConfig& config) {
  const MoeConfig& moe = config.moe;
  if (moe.experts <= 0) return refuse("moe.experts " + text(moe.experts) + " with MoE layers; at least 1 is expected");
  if (moe.topk <= 0 || moe.topk > moe.experts) {
    return refuse("moe.topk " + text(moe.topk) + " of " + text(moe.experts) +
                  " experts; 1 to the number of experts is expected");
  }
  if (moe.ffn_hidden_size <= 0) return refuse("moe.ffn_hidden_size " + text(moe.ffn_hidden_size) + " is not positive");
  if (moe.shared_ffn_hidden_size < 0) {
    return refuse("moe.shared_ffn_hidden_size " + text(moe.shared_ffn_hidden_size) + " is negative");
  }
  if (!std::isfinite(moe.scaling_factor)) return refuse("moe.scaling_factor is not finite");
  if (moe.groups == 0 && moe.group_topk == 0) return {};
  if (moe.groups <= 0 || moe.experts % moe.groups != 0) {
    return refuse(text(moe.experts) + " experts cannot be split into moe.groups " + text(moe.groups));
  }
  if (moe.group_topk <= 0 || moe.group_topk > moe.groups) {
    return refuse("moe.group_topk " + text(moe.group_topk) + " of " + text(moe.groups) + " groups");
  }
  const int reachable = moe.experts / moe.groups * moe.group_topk;
  if (moe.topk > reachable || moe.topk < moe.group_topk) {
    return refuse("moe.topk " + text(moe.topk) + " with moe.group_topk " + text(moe.group_topk) + ", which reach " +
                  text(reachable) + " experts; between group_topk and that number is expected");
  }
  return {};
}

}  // namespace

bool ModelConfig::any_moe() const { return std::find(moe_layers.begin(), moe_layers.end(), true) != moe_layers.end(); }

std::string to_json(const ModelConfig& config) {
  Json object = Json::object();
  visit_config(config, Writer{object});
  return object.dump();
}

Result<ModelConfig> parse_model_config(const std::string& json) {
  Json object = Json::parse(json, nullptr, false);
  if (!object.is_object()) return refuse("the text is not a JSON object");
  ModelConfig config;
  Status status;
  Reader reader{object, "", status};
  visit_config(config, reader);
  reader.refuse_rest();
  if (!status.ok()) return status;
  if (Status valid = validate(config); !valid.ok()) return valid;
  return config;
}

Status validate(const ModelConfig& config) {
  const std::pair<const char*, int> positive[] = {{"num_layers", config.num_layers},
                                                  {"hidden_size", config.hidden_size},
                                                  {"ffn_hidden_size", config.ffn_hidden_size},
                                                  {"num_attention_heads", config.num_attention_heads},
                                                  {"num_query_groups", config.num_query_groups},
                                                  {"kv_channels", config.kv_channels},
                                                  {"vocab_size", config.vocab_size},
                                                  {"max_position_embeddings", config.max_position_embeddings}};
  constexpr int kMost = 1 << 28;  // keeps every product of two sizes in 64 bits
  for (const auto& [name, value] : positive) {
    if (value <= 0 || value > kMost)
      return refuse(std::string(name) + " " + text(value) + " is not between 1 and 2^28");
  }
  if (config.num_attention_heads % config.num_query_groups != 0) {
    return refuse("num_attention_heads " + text(config.num_attention_heads) + " is no multiple of num_query_groups " +
                  text(config.num_query_groups));
  }
  if (!(config.norm_epsilon >= 0) || !std::isfinite(config.norm_epsilon)) return refuse("norm_epsilon is negative");
  if (config.positions == Positions::kRope) {
    if (!(config.rotary_base > 0) || !std::isfinite(config.rotary_base)) return refuse("rotary_base is not positive");
    if (!(config.rotary_percent > 0 && config.rotary_percent <= 1)) return refuse("rotary_percent is not in (0, 1]");
    const int rotated = static_cast<int>(config.kv_channels * config.rotary_percent);
    if (rotated <= 0 || rotated % 2 != 0) {
      return refuse("rotary dimension " + text(rotated) + " (kv_channels " + text(config.kv_channels) +
                    " times rotary_percent) is not even and positive");
    }
  }
  if (config.moe_layers.size() != static_cast<size_t>(config.num_layers)) {
    return refuse("moe_layers has " + std::to_string(config.moe_layers.size()) + " entries for num_layers " +
                  text(config.num_layers));
  }
  return config.any_moe() ? validate_moe(config) : Status();
}

}  // namespace assay::model
