// The resolved description of one model: what the arithmetic needs to know and nothing else.
// Plain data; made by resolve_model() from arguments, carried to a backend as JSON (to_json / parse_model_config).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::model {

// Arithmetic of a run (docs/determinism.md): kBf16 rounds weights, KV, operator inputs, router logits and logits to
// bf16; accumulation, norm, softmax and residual are fp32 in both.
enum class Arithmetic { kFp32, kBf16 };

enum class Positions { kLearnedAbsolute, kRope, kNone };
enum class Norm { kLayerNorm, kRmsNorm };

// Activation of the MLP. kSwiglu is gated: fc1 holds the gate rows, then the up rows (2 * width rows); the others are
// not gated. kGeluTanh is what Megatron's fused bias-GELU computes (biases present, fusion on); kGeluErf else.
enum class Activation { kSwiglu, kSquaredRelu, kGeluErf, kGeluTanh };

enum class RouterScore { kSoftmax, kSigmoid };

// Mixture-of-Experts part; meaningful for the layers marked in ModelConfig::moe_layers.
struct MoeConfig {
  int experts = 0;
  int topk = 2;
  int ffn_hidden_size = 0;         // width of one expert
  int shared_ffn_hidden_size = 0;  // 0: no shared expert
  bool shared_gate = false;        // shared output times sigmoid(x . gate_weight)
  RouterScore score = RouterScore::kSoftmax;
  bool pre_softmax = false;   // softmax over all experts before top-k, no renormalisation
  bool expert_bias = false;   // added for the choice only
  int groups = 0;             // group-limited routing: number of groups; 0: off
  int group_topk = 0;         // groups taken
  double scaling_factor = 1;  // multiplies the routed weights
  bool router_fp32 = false;   // --moe-router-dtype fp32 or fp64: router logits are not rounded to bf16
  bool router_bias = false;   // --moe-router-... linear bias, where a checkpoint has one

  bool operator==(const MoeConfig&) const = default;
};

struct ModelConfig {
  int num_layers = 0;
  int hidden_size = 0;
  int ffn_hidden_size = 0;      // dense MLP width
  int num_attention_heads = 0;  // query heads
  int num_query_groups = 0;     // key/value heads; == num_attention_heads for multi-head attention
  int kv_channels = 0;          // head dimension
  int vocab_size = 0;           // rows of the output layer that count: padded vocabulary
  int max_position_embeddings = 0;
  Positions positions = Positions::kRope;
  double rotary_base = 10000;
  double rotary_percent = 1.0;  // rotates int(kv_channels * percent) leading dimensions
  bool rotary_interleaved = false;
  Norm norm = Norm::kLayerNorm;
  double norm_epsilon = 1e-5;
  bool norm_gamma_plus_one = false;  // --apply-layernorm-1p
  bool qk_layernorm = false;         // per head over kv_channels, before RoPE
  Activation activation = Activation::kGeluTanh;
  bool linear_bias = true;  // biases of every linear layer (not of the output layer)
  bool qkv_bias = false;    // bias of linear_qkv although linear_bias is off
  bool tied_embeddings = true;
  Arithmetic arithmetic = Arithmetic::kFp32;
  std::vector<bool> moe_layers;  // (num_layers): true where the MLP is a mixture of experts
  MoeConfig moe;

  bool has_qkv_bias() const { return linear_bias || qkv_bias; }
  bool any_moe() const;

  bool operator==(const ModelConfig&) const = default;
};

// JSON object with the field names above; enums as their Megatron spellings. Stable key order.
std::string to_json(const ModelConfig& config);

// Inverse of to_json. Fails with kInvalid naming the key on a missing, unknown or out-of-range field.
Result<ModelConfig> parse_model_config(const std::string& json);

// Checks what no architecture allows (heads not divisible by groups, top-k over experts, odd rotary dimension, ...):
// kInvalid with both values named.
Status validate(const ModelConfig& config);

}  // namespace assay::model
