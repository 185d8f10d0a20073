#include "backends/cuda/fast/supports.h"

#include "backends/cuda/fast/persistent.h"

namespace assay::cuda::fast {
namespace {

using model::ModelConfig;

std::string number(const char* what, int seen, const std::string& wanted) {
  return what + (" " + std::to_string(seen)) + ", the fast decode step has " + wanted;
}

std::string unsupported_experts(const model::MoeConfig& moe) {
  if (moe.experts % 16 != 0 || moe.experts > kMostExperts) {
    return number("number of experts", moe.experts, "multiples of 16 up to " + std::to_string(kMostExperts));
  }
  if (moe.topk > kMostTopk) return number("top-k", moe.topk, "1 .. " + std::to_string(kMostTopk));
  if (moe.ffn_hidden_size % 64 != 0) return number("expert width", moe.ffn_hidden_size, "multiples of 64");
  if (moe.shared_ffn_hidden_size % 64 != 0 || moe.shared_ffn_hidden_size == 0) {
    return number("shared expert's width", moe.shared_ffn_hidden_size, "multiples of 64");
  }
  if (moe.score != model::RouterScore::kSigmoid) return "softmax router, the fast decode step has a sigmoid router";
  if (moe.groups != 0) return "router with groups, the fast decode step has none";
  if (moe.shared_gate) return "gate of the shared expert, the fast decode step has none";
  if (moe.router_bias) return "bias of the router, the fast decode step has none";
  return {};
}

std::string unsupported_attention(const ModelConfig& config) {
  if (config.kv_channels != kHeadSize) return number("head size", config.kv_channels, std::to_string(kHeadSize));
  if (config.num_attention_heads * kHeadSize != kHidden) {
    return number("query heads", config.num_attention_heads, std::to_string(kHidden / kHeadSize));
  }
  if (config.num_attention_heads / config.num_query_groups > kMostHeadsPerGroup) {
    return number("query heads a group", config.num_attention_heads / config.num_query_groups,
                  "1 .. " + std::to_string(kMostHeadsPerGroup));
  }
  if (config.positions != model::Positions::kRope || config.rotary_interleaved || config.rotary_percent != 1.0) {
    return "positions other than RoPE over both halves of a head, the fast decode step has only that";
  }
  if (config.qk_layernorm) return "norm of queries and keys, the fast decode step has none";
  return {};
}

}  // namespace

std::string unsupported(const ModelConfig& config) {
  if (config.arithmetic != model::Arithmetic::kBf16) return "fp32 arithmetic, the fast decode step has bf16";
  if (config.hidden_size != kHidden) return number("hidden size", config.hidden_size, std::to_string(kHidden));
  if (config.norm != model::Norm::kRmsNorm) return "LayerNorm, the fast decode step has RMSNorm";
  if (config.activation != model::Activation::kSwiglu) return "another activation, the fast decode step has SwiGLU";
  if (config.linear_bias || config.qkv_bias) return "biases of linear layers, the fast decode step has none";
  if (config.vocab_size % 16 != 0) return number("vocabulary", config.vocab_size, "multiples of 16");
  bool dense = config.moe_layers.size() < static_cast<size_t>(config.num_layers);
  for (const bool moe : config.moe_layers) dense = dense || !moe;
  if (dense && config.ffn_hidden_size % 64 != 0) return number("MLP width", config.ffn_hidden_size, "multiples of 64");
  std::string reason = unsupported_attention(config);
  if (reason.empty() && config.any_moe()) reason = unsupported_experts(config.moe);
  return reason;
}

}  // namespace assay::cuda::fast
