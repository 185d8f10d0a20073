#include "backends/model/config/effective_args.h"

#include <cmath>
#include <cstdio>
#include <limits>

namespace assay::model {
namespace {

// Restored whenever the checkpoint has a value that is not None.
constexpr std::string_view kForced[] = {"num_query_groups",
                                        "group_query_attention",
                                        "position_embedding_type",
                                        "add_position_embedding",
                                        "use_rotary_position_embeddings",
                                        "rotary_base",
                                        "rotary_percent",
                                        "rotary_interleaved",
                                        "add_bias_linear",
                                        "add_qkv_bias",
                                        "squared_relu",
                                        "swiglu",
                                        "untie_embeddings_and_output_weights",
                                        "layernorm_zero_centered_gamma",
                                        "normalization",
                                        "apply_query_key_layer_scaling",
                                        "attention_dropout",
                                        "hidden_dropout",
                                        "mtp_hybrid_override_pattern",
                                        "mtp_num_layers",
                                        "mtp_use_repeated_layer",
                                        "spec",
                                        "num_experts",
                                        "moe_layer_freq",
                                        "moe_router_topk",
                                        "moe_router_pre_softmax",
                                        "moe_grouped_gemm",
                                        "moe_single_grouped_weight",
                                        "moe_single_grouped_bias",
                                        "moe_shared_expert_intermediate_size",
                                        "moe_router_score_function",
                                        "moe_router_enable_expert_bias",
                                        "moe_router_topk_scaling_factor",
                                        "mamba_state_dim",
                                        "mamba_head_dim",
                                        "mamba_num_groups",
                                        "mamba_num_heads",
                                        "gdp_num_householder",
                                        "heterogeneous_layers_config_path",
                                        "heterogeneous_layers_config_encoded_json",
                                        "moe_latent_size",
                                        "tiktoken_pattern"};
// Restored only where nothing is given.
constexpr std::string_view kIfUnset[] = {
    "num_layers",  "hidden_size",       "ffn_hidden_size",         "seq_length",          "num_attention_heads",
    "kv_channels", "padded_vocab_size", "max_position_embeddings", "hybrid_layer_pattern"};

bool given_true(const ArgRecord& given, const std::string& name, bool otherwise) {
  const auto found = given.find(name);
  const bool* value = found == given.end() ? nullptr : std::get_if<bool>(&found->second.value);
  return value == nullptr ? otherwise : *value;
}

// The checkpoint's arguments under today's names.
ArgRecord renamed(ArgRecord checkpoint) {
  const auto has = [&](const char* name) {
    const auto found = checkpoint.find(name);
    return found != checkpoint.end() && !is_none(found->second);
  };
  if (has("disable_bias_linear")) {
    const bool* disabled = std::get_if<bool>(&checkpoint["disable_bias_linear"].value);
    if (disabled != nullptr) checkpoint["add_bias_linear"].value = !*disabled;
  }
  if (has("apply_layernorm_1p") && !has("layernorm_zero_centered_gamma")) {
    checkpoint["layernorm_zero_centered_gamma"] = checkpoint["apply_layernorm_1p"];
  }
  if (has("hybrid_override_pattern") && !has("hybrid_layer_pattern")) {
    checkpoint["hybrid_layer_pattern"] = checkpoint["hybrid_override_pattern"];
    checkpoint.erase("num_layers");
  }
  return checkpoint;
}

}  // namespace

std::string_view to_string(ArgOrigin origin) {
  switch (origin) {
    case ArgOrigin::kArgument:
      return "argument";
    case ArgOrigin::kCheckpoint:
      return "checkpoint";
    case ArgOrigin::kDefault:
      break;
  }
  return "default";
}

bool is_none(const ArgValue& value) { return std::holds_alternative<std::monostate>(value.value); }

EffectiveArgs apply_checkpoint_args(const ArgRecord& given, const ArgRecord* checkpoint) {
  EffectiveArgs args;
  for (const auto& [name, value] : given) args[name] = {value, ArgOrigin::kArgument};
  if (checkpoint == nullptr || !given_true(given, "use_checkpoint_args", false)) return args;
  const ArgRecord stored = renamed(*checkpoint);
  const auto restore = [&](std::string_view name, bool force) {
    const std::string key(name);
    const auto found = stored.find(key);
    if (found == stored.end() || is_none(found->second)) return;
    if (!force && args.contains(key)) return;
    args[key] = {found->second, ArgOrigin::kCheckpoint};
  };
  for (const std::string_view name : kIfUnset) restore(name, false);
  for (const std::string_view name : kForced) restore(name, true);
  const auto experts = stored.find("num_experts");
  if (experts != stored.end() && !is_none(experts->second)) {
    restore("moe_ffn_hidden_size", true);
  } else {
    args.erase("moe_ffn_hidden_size");
  }
  if (given_true(given, "use_tokenizer_model_from_checkpoint_args", true)) {
    restore("tokenizer_model", true);
    restore("tokenizer_type", true);
  }
  return args;
}

std::string to_text(const ArgValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const {
      char text[40];
      std::snprintf(text, sizeof text, "%.12g", d);
      return text;
    }
    std::string operator()(const std::string& s) const { return s; }
    std::string operator()(const ArgList& list) const {
      std::string out;
      for (const ArgValue& item : list) out += (out.empty() ? "" : ", ") + to_text(item);
      return "[" + out + "]";
    }
    std::string operator()(const Opaque& opaque) const { return "<" + opaque.text + ">"; }
  };
  return std::visit(Visitor{}, value.value);
}

const ArgValue* ArgReader::value(std::string_view name) const {
  const auto found = args_.find(name);
  return found == args_.end() || is_none(found->second.value) ? nullptr : &found->second.value;
}

ArgOrigin ArgReader::origin(std::string_view name) const {
  const auto found = args_.find(name);
  return found == args_.end() || is_none(found->second.value) ? ArgOrigin::kDefault : found->second.origin;
}

void ArgReader::fail(std::string_view name, std::string_view expected) {
  if (!status_.ok()) return;
  status_ = invalid(std::string(to_string(origin(name))) + " " + std::string(name) + ": " + to_text(*value(name)) +
                    " is given, " + std::string(expected) + " is expected");
}

bool ArgReader::flag(std::string_view name, bool otherwise) {
  const ArgValue* found = value(name);
  if (found == nullptr) return otherwise;
  if (const bool* flag = std::get_if<bool>(&found->value)) return *flag;
  fail(name, "True or False");
  return otherwise;
}

std::optional<int> ArgReader::integer(std::string_view name) {
  const ArgValue* found = value(name);
  if (found == nullptr) return std::nullopt;
  const int64_t* integer = std::get_if<int64_t>(&found->value);
  if (integer != nullptr && *integer >= std::numeric_limits<int>::min() &&
      *integer <= std::numeric_limits<int>::max()) {
    return static_cast<int>(*integer);
  }
  fail(name, "an integer of 32 bits");
  return std::nullopt;
}

int ArgReader::integer(std::string_view name, int otherwise) { return integer(name).value_or(otherwise); }

std::optional<double> ArgReader::number(std::string_view name) {
  const ArgValue* found = value(name);
  if (found == nullptr) return std::nullopt;
  if (const int64_t* integer = std::get_if<int64_t>(&found->value)) return static_cast<double>(*integer);
  const double* number = std::get_if<double>(&found->value);
  if (number != nullptr && std::isfinite(*number)) return *number;
  fail(name, "a finite number");
  return std::nullopt;
}

double ArgReader::number(std::string_view name, double otherwise) { return number(name).value_or(otherwise); }

std::string ArgReader::text(std::string_view name, std::string_view otherwise) {
  const ArgValue* found = value(name);
  if (found == nullptr) return std::string(otherwise);
  if (const std::string* text = std::get_if<std::string>(&found->value)) return *text;
  fail(name, "a text");
  return std::string(otherwise);
}

}  // namespace assay::model
