#include "backends/reference/testing/odd_models.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "backends/model/checkpoint/model_writer.h"

namespace assay::testing {
namespace {

std::vector<std::pair<std::string, model::ModelConfig>> odd_models() {
  model::ModelConfig base;
  base.num_layers = 2;
  base.hidden_size = 40;
  base.ffn_hidden_size = 52;
  base.num_attention_heads = 6;
  base.num_query_groups = 2;
  base.kv_channels = 20;
  base.vocab_size = 290;
  base.max_position_embeddings = 1024;
  base.norm = model::Norm::kRmsNorm;
  base.activation = model::Activation::kSwiglu;
  base.linear_bias = false;
  base.tied_embeddings = false;
  base.moe_layers = {false, false};
  std::vector<std::pair<std::string, model::ModelConfig>> models;

  model::ModelConfig c = base;
  c.norm = model::Norm::kLayerNorm;
  c.norm_gamma_plus_one = true;
  c.positions = model::Positions::kLearnedAbsolute;
  c.activation = model::Activation::kGeluTanh;
  c.linear_bias = true;
  c.tied_embeddings = true;
  c.num_query_groups = 6;
  c.vocab_size = 4200;  // more than one segment of the log-softmax
  models.emplace_back("LayerNorm 1p, learned positions, GELU tanh, biases, tied", c);

  c = base;
  c.rotary_percent = 0.6;
  c.rotary_interleaved = true;
  c.qk_layernorm = true;
  c.qkv_bias = true;
  c.hidden_size = 300;  // more than one block of a dot
  c.activation = model::Activation::kGeluErf;
  models.emplace_back("interleaved RoPE, query and key norm, GELU erf", c);

  c = base;
  c.moe_layers = {true, true};
  c.moe.experts = 9;
  c.moe.topk = 4;
  c.moe.ffn_hidden_size = 28;
  c.moe.shared_ffn_hidden_size = 36;
  c.moe.score = model::RouterScore::kSigmoid;
  c.moe.expert_bias = true;
  c.moe.groups = 3;
  c.moe.group_topk = 2;
  c.moe.scaling_factor = 2.5;
  models.emplace_back("sigmoid router, groups, expert bias, shared expert", c);

  c.moe_layers = {false, true};
  c.moe.score = model::RouterScore::kSoftmax;
  c.moe.pre_softmax = true;
  c.moe.expert_bias = false;
  c.moe.groups = 0;
  c.moe.group_topk = 0;
  c.moe.shared_gate = true;
  c.moe.router_fp32 = true;
  c.norm = model::Norm::kLayerNorm;
  c.activation = model::Activation::kSquaredRelu;
  c.positions = model::Positions::kNone;
  c.num_query_groups = 1;
  models.emplace_back("dense then mixture, softmax before the choice, gated shared expert", c);

  c.moe.pre_softmax = false;
  c.moe.router_fp32 = false;
  c.moe.shared_gate = false;
  c.moe.shared_ffn_hidden_size = 0;
  c.moe.router_bias = true;
  c.linear_bias = true;
  models.emplace_back("biases of router and experts", c);
  return models;
}

}  // namespace

std::vector<VectorCase> odd_cases() {
  std::vector<VectorCase> result;
  const model::Dtype dtypes[] = {model::Dtype::kFloat32, model::Dtype::kBfloat16, model::Dtype::kFloat16};
  size_t i = 0;
  for (const auto& [name, config] : odd_models()) {
    VectorCase one;
    one.name = name;
    one.config = config;
    one.checkpoint = std::filesystem::temp_directory_path().string() + "/assay_odd_models_" + std::to_string(getpid()) +
                     "_" + std::to_string(i);
    model::CheckpointSpec spec;
    spec.model = config;
    spec.dtype = dtypes[i % 3];
    spec.std = 0.2;
    const Status status = model::write_checkpoint(spec, one.checkpoint);
    if (!status.ok()) one.name += ": " + status.message();
    for (const size_t count : {size_t{5}, size_t{33}, i == 1 ? size_t{530} : 20 * i + 1}) {
      one.requests.push_back({some_ids(count, config.vocab_size, static_cast<uint32_t>(count)), {}, {}});
    }
    result.push_back(std::move(one));
    ++i;
  }
  return result;
}

void remove_checkpoints(const std::vector<VectorCase>& cases) {
  for (const VectorCase& one : cases) std::filesystem::remove_all(one.checkpoint);
}

std::vector<int32_t> some_ids(size_t count, int vocab, uint32_t seed) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    seed = seed * 1664525u + 1013904223u;
    id = static_cast<int32_t>((seed >> 8) % static_cast<uint32_t>(vocab));
  }
  return ids;
}

}  // namespace assay::testing
