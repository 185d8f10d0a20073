#include "backends/model/config/unsupported.h"

#include <algorithm>
#include <optional>

namespace assay::model {
namespace {

enum class From { kArguments, kArchitecture };  // kArchitecture: the checkpoint's value counts too

// `allowed` lists value texts beside the harmless ones (None, False, 0, an empty or all-zero list), separated by |.
struct Rule {
  const char* name;    // in the Namespace
  const char* option;  // on the command line
  From from;
  const char* allowed;
  const char* supported;  // what to do instead
};

constexpr From kArgs = From::kArguments;
constexpr From kArch = From::kArchitecture;
constexpr const char* kArithmetic = "fp32 and --bf16 arithmetic";
constexpr const char* kPlainGpt = "GPT models with causal softmax attention in every layer";
constexpr const char* kGlu = "SwiGLU (--swiglu), squared ReLU and GELU";
constexpr const char* kRouting = "routing of every token to its top-k experts";

constexpr Rule kRules[] = {
    {"fp16", "--fp16", kArgs, "", kArithmetic},
    {"fp8", "--fp8-format", kArgs, "", kArithmetic},
    {"fp4", "--fp4-format", kArgs, "", kArithmetic},
    {"te_precision_config_file", "--te-precision-config-file", kArgs, "", kArithmetic},
    {"logit_dtype", "--output-logit-dtype", kArgs, "", "logits in the dtype of the arithmetic"},
    {"fp32_residual_connection", "--fp32-residual-connection", kArch, "", kArithmetic},
    {"softmax_type", "--softmax-type", kArch, "vanilla", "vanilla"},
    {"window_size", "--window-size", kArch, "", "full causal attention"},
    {"position_embedding_type", "--position-embedding-type", kArch, "learned_absolute|rope|none",
     "learned_absolute, rope and none"},
    {"rope_type", "--rope-type", kArch, "rope", "rope"},
    {"use_rope_scaling", "--use-rope-scaling", kArch, "", "RoPE without scaling"},
    {"rotary_seq_len_interpolation_factor", "--rotary-seq-len-interpolation-factor", kArch, "1",
     "RoPE without scaling"},
    {"no_rope_freq", "--no-rope-freq", kArch, "", "RoPE in every layer"},
    {"glu_linear_offset", "--glu-linear-offset", kArch, "", kGlu},
    {"activation_func_clamp_value", "--activation-func-clamp-value", kArch, "", kGlu},
    {"quick_geglu", "--quick-geglu", kArch, "", kGlu},
    {"qk_l2_norm", "--qk-l2-norm", kArch, "", "--qk-layernorm"},
    {"attention_output_gate", "--attention-output-gate", kArch, "", kPlainGpt},
    {"multi_latent_attention", "--multi-latent-attention", kArch, "", kPlainGpt},
    {"experimental_attention_variant", "--experimental-attention-variant", kArch, "", kPlainGpt},
    {"linear_attention_freq", "--linear-attention-freq", kArch, "", kPlainGpt},
    {"heterogeneous_layers_config_path", "--heterogeneous-layers-config-path", kArch, "", kPlainGpt},
    {"heterogeneous_layers_config_encoded_json", "--heterogeneous-layers-config-encoded-json", kArch, "", kPlainGpt},
    {"hybrid_layer_pattern", "--hybrid-layer-pattern", kArch, "", kPlainGpt},
    {"hybrid_override_pattern", "--hybrid-override-pattern", kArch, "", kPlainGpt},
    {"is_hybrid_model", "--is-hybrid-model", kArch, "", kPlainGpt},
    {"model_provider", "--model-provider", kArgs, "gpt", "gpt"},
    {"spec", "--spec", kArch, "", "the layers that the other arguments describe"},
    {"yaml_cfg", "--yaml-cfg", kArgs, "", "arguments in MODEL_ARGS"},
    {"use_mup", "--use-mup", kArch, "", kPlainGpt},
    {"enable_mhc_connections", "--enable-mhc-connections", kArch, "", "plain residual connections"},
    {"apply_residual_connection_post_layernorm", "--apply-residual-connection-post-layernorm", kArch, "",
     "the residual taken before the norm"},
    {"moe_latent_size", "--moe-latent-size", kArch, "", "experts that read the hidden state itself"},
    {"moe_apply_probs_on_input", "--moe-apply-probs-on-input", kArch, "", "routing weights applied before fc2"},
    {"moe_mlp_glu_interleave_size", "--moe-mlp-glu-interleave-size", kArch, "", "gate rows, then up rows"},
    {"moe_shared_expert_glu_interleave_size", "--moe-shared-expert-glu-interleave-size", kArch, "",
     "gate rows, then up rows"},
    {"moe_router_score_function", "--moe-router-score-function", kArch, "softmax|sigmoid", "softmax and sigmoid"},
    {"moe_router_load_balancing_type", "--moe-router-load-balancing-type", kArch,
     "aux_loss|seq_aux_loss|global_aux_loss|none", "load balancing that leaves the routing alone"},
    {"moe_expert_capacity_factor", "--moe-expert-capacity-factor", kArgs, "", kRouting},
    {"moe_pad_expert_input_to_capacity", "--moe-pad-expert-input-to-capacity", kArgs, "", kRouting},
    {"moe_input_jitter_eps", "--moe-input-jitter-eps", kArgs, "", kRouting},
    {"moe_router_force_load_balancing", "--moe-router-force-load-balancing", kArgs, "", kRouting},
    {"moe_router_force_biased", "--moe-router-force-biased", kArgs, "", kRouting},
    {"moe_use_upcycling", "--moe-use-upcycling", kArgs, "", "checkpoints that hold the experts"},
    {"num_speculative_tokens", "--num-speculative-tokens", kArgs, "", "decoding one token a step"},
    {"context_parallel_size", "--context-parallel-size", kArgs, "1", "1"},
    {"vocab_extra_ids", "--vocab-extra-ids", kArgs, "", "vocabularies without extra ids"},
    {"pretrained_checkpoint", "--pretrained-checkpoint", kArgs, "", "the checkpoint named by --load"},
};

bool harmless(const ArgValue& value) {
  struct Visitor {
    bool operator()(std::monostate) const { return true; }
    bool operator()(bool b) const { return !b; }
    bool operator()(int64_t i) const { return i == 0; }
    bool operator()(double d) const { return d == 0; }
    bool operator()(const std::string& s) const { return s.empty() || s == "None"; }
    bool operator()(const ArgList& list) const { return std::all_of(list.begin(), list.end(), harmless); }
    bool operator()(const Opaque&) const { return false; }
  };
  return std::visit(Visitor{}, value.value);
}

bool listed(std::string_view allowed, const std::string& text) {
  while (!allowed.empty()) {
    const size_t end = std::min(allowed.find('|'), allowed.size());
    if (allowed.substr(0, end) == text) return true;
    allowed.remove_prefix(std::min(end + 1, allowed.size()));
  }
  return false;
}

bool allowed(const Rule& rule, const ArgValue& value) {
  if (harmless(value)) return true;
  if (const ArgList* list = std::get_if<ArgList>(&value.value)) {  // several load-balancing losses
    return std::all_of(list->begin(), list->end(),
                       [&](const ArgValue& item) { return listed(rule.allowed, to_text(item)); });
  }
  return listed(rule.allowed, to_text(value));
}

struct Found {
  const ArgValue* value = nullptr;
  ArgOrigin origin = ArgOrigin::kArgument;
};

Found find(const Rule& rule, const EffectiveArgs& args, const ArgRecord* checkpoint) {
  const auto effective = args.find(std::string_view(rule.name));
  if (effective != args.end()) return {&effective->second.value, effective->second.origin};
  if (checkpoint == nullptr || rule.from == From::kArguments) return {};
  const auto stored = checkpoint->find(rule.name);
  if (stored == checkpoint->end()) return {};
  return {&stored->second, ArgOrigin::kCheckpoint};
}

bool is_true(const Found& found) {
  const bool* flag = found.value == nullptr ? nullptr : std::get_if<bool>(&found.value->value);
  return flag != nullptr && *flag;
}

}  // namespace

Status check_supported(const EffectiveArgs& args, const ArgRecord* checkpoint) {
  for (const Rule& rule : kRules) {
    const Found found = find(rule, args, checkpoint);
    if (found.value == nullptr || allowed(rule, *found.value)) continue;
    return unsupported(std::string(rule.option) + " " + to_text(*found.value) + " (from the " +
                       std::string(to_string(found.origin)) +
                       (found.origin == ArgOrigin::kCheckpoint ? "'s arguments" : "s") +
                       ") cannot be computed here: supported: " + rule.supported);
  }
  const auto arch = [&](const char* name) { return find({name, "", kArch, "", ""}, args, checkpoint); };
  if (is_true(arch("gated_linear_unit")) && !is_true(arch("swiglu"))) {
    return unsupported(
        std::string(
            "gated_linear_unit without swiglu (from the checkpoint's arguments) cannot be computed here: supported: ") +
        kGlu);
  }
  if (is_true(arch("use_te_activation_func")) && !is_true(arch("swiglu"))) {
    return unsupported(
        "--use-te-activation-func without --swiglu cannot be computed here: supported: Megatron's own activations");
  }
  return {};
}

}  // namespace assay::model
