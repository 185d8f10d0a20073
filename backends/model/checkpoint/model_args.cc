// The argument names and values of a Megatron-LM training run that built such a model.
#include <algorithm>

#include "backends/model/checkpoint/model_writer.h"

namespace assay::model {
namespace {

// None for zero, as for sizes that were not given.
ArgValue size_or_none(int64_t value) {
  if (value == 0) return {std::monostate()};
  return {value};
}

const char* position_name(Positions positions) {
  switch (positions) {
    case Positions::kLearnedAbsolute:
      return "learned_absolute";
    case Positions::kRope:
      return "rope";
    case Positions::kNone:
      break;
  }
  return "none";
}

ArgValue moe_pattern(const CheckpointSpec& spec) {
  const std::vector<bool>& layers = spec.model.moe_layers;
  const bool mixed = std::ranges::adjacent_find(layers, std::not_equal_to<>()) != layers.end();
  if (!mixed && !spec.per_layer_keys) return {int64_t{1}};
  ArgList list;
  for (bool moe : layers) list.emplace_back().value = int64_t{moe ? 1 : 0};
  ArgValue pattern;
  pattern.value = std::move(list);
  return pattern;
}

void add_moe(const CheckpointSpec& spec, ArgRecord& args) {
  const ModelConfig& model = spec.model;
  const MoeConfig& moe = model.moe;
  const bool any = std::ranges::find(model.moe_layers, true) != model.moe_layers.end();
  args["num_experts"] = size_or_none(any ? moe.experts : 0);
  args["moe_layer_freq"] = any ? moe_pattern(spec) : ArgValue{int64_t{1}};
  args["moe_ffn_hidden_size"] = size_or_none(any ? moe.ffn_hidden_size : 0);
  args["moe_router_topk"] = {int64_t{any ? moe.topk : 2}};
  args["moe_router_pre_softmax"] = {moe.pre_softmax};
  args["moe_router_score_function"] = {std::string(moe.score == RouterScore::kSigmoid ? "sigmoid" : "softmax")};
  args["moe_router_enable_expert_bias"] = {moe.expert_bias};
  args["moe_router_topk_scaling_factor"] =
      moe.scaling_factor == 1 ? ArgValue{std::monostate()} : ArgValue{moe.scaling_factor};
  args["moe_router_num_groups"] = size_or_none(moe.groups);
  args["moe_router_group_topk"] = size_or_none(moe.group_topk);
  args["moe_router_dtype"] = moe.router_fp32 ? ArgValue{std::string("fp32")} : ArgValue{std::monostate()};
  args["moe_shared_expert_intermediate_size"] = size_or_none(any ? moe.shared_ffn_hidden_size : 0);
  args["moe_shared_expert_gate"] = {moe.shared_gate};
  args["moe_grouped_gemm"] = {spec.te_names};
  args["moe_token_dispatcher_type"] = {std::string("alltoall")};
}

}  // namespace

ArgRecord model_args(const CheckpointSpec& spec) {
  const ModelConfig& model = spec.model;
  const bool bf16 = model.arithmetic == Arithmetic::kBf16;
  ArgRecord args;
  args["num_layers"] = {int64_t{model.num_layers}};
  args["hidden_size"] = {int64_t{model.hidden_size}};
  args["ffn_hidden_size"] = {int64_t{model.ffn_hidden_size > 0 ? model.ffn_hidden_size : 4 * model.hidden_size}};
  args["seq_length"] = {spec.seq_length > 0 ? spec.seq_length : int64_t{model.max_position_embeddings}};
  args["max_position_embeddings"] = {int64_t{model.max_position_embeddings}};
  args["num_attention_heads"] = {int64_t{model.num_attention_heads}};
  args["num_query_groups"] = {int64_t{model.num_query_groups}};
  args["group_query_attention"] = {model.num_query_groups != model.num_attention_heads};
  args["kv_channels"] = {int64_t{model.kv_channels}};
  args["padded_vocab_size"] = {int64_t{model.vocab_size}};
  args["vocab_size"] = {int64_t{model.vocab_size}};
  args["position_embedding_type"] = {std::string(position_name(model.positions))};
  args["add_position_embedding"] = {model.positions == Positions::kLearnedAbsolute};
  args["use_rotary_position_embeddings"] = {false};
  args["rotary_base"] = model.rotary_base == static_cast<double>(static_cast<int64_t>(model.rotary_base))
                            ? ArgValue{static_cast<int64_t>(model.rotary_base)}
                            : ArgValue{model.rotary_base};
  args["rotary_percent"] = {model.rotary_percent};
  args["rotary_interleaved"] = {model.rotary_interleaved};
  args["add_bias_linear"] = {model.linear_bias};
  args["add_qkv_bias"] = {model.qkv_bias};
  args["swiglu"] = {model.activation == Activation::kSwiglu};
  args["squared_relu"] = {model.activation == Activation::kSquaredRelu};
  args["bias_gelu_fusion"] = {model.activation == Activation::kGeluTanh};
  args["untie_embeddings_and_output_weights"] = {!model.tied_embeddings};
  args["apply_layernorm_1p"] = {model.norm_gamma_plus_one};
  args["normalization"] = {std::string(model.norm == Norm::kRmsNorm ? "RMSNorm" : "LayerNorm")};
  args["norm_epsilon"] = {model.norm_epsilon};
  args["qk_layernorm"] = {model.qk_layernorm};
  args["apply_query_key_layer_scaling"] = {false};
  args["attention_dropout"] = {0.0};
  args["hidden_dropout"] = {0.0};
  args["mtp_num_layers"] = {std::monostate()};
  args["spec"] = {std::monostate()};
  args["tokenizer_type"] = {std::string("NullTokenizer")};
  args["tokenizer_model"] = {std::monostate()};
  args["ckpt_format"] = {std::string("torch_dist")};
  args["bf16"] = {bf16};
  args["fp16"] = {false};
  args["params_dtype"] = {Opaque{bf16 ? "torch.bfloat16" : "torch.float32"}};
  add_moe(spec, args);
  return args;
}

}  // namespace assay::model
