// Writes a torch_dist checkpoint of a whole model with seeded weights, keys and arguments as Megatron-LM has them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/args_record.h"
#include "backends/model/checkpoint/torch_dist_writer.h"
#include "backends/model/config/model_config.h"

namespace assay::model {

// Tensors whose key matches `glob` (fnmatch) are cut into `count` parts along `axis` (negative: from the last).
// More parts than elements: as many as there are.
struct ChunkRule {
  std::string glob;
  int axis = 0;
  int64_t count = 1;
};

struct CheckpointSpec {
  ModelConfig model;       // arithmetic kBf16: the argument bf16 is True
  int64_t seq_length = 0;  // argument; 0: max_position_embeddings
  Dtype dtype = Dtype::kBfloat16;
  uint64_t seed = 1;
  double std = 0.02;  // of weights and biases; gammas are 1 (or 0 with norm_gamma_plus_one) + std * z
  std::optional<double> residual_std = {};  // of weights whose products are added to the residual; absent: std
  bool te_names = false;          // norm before a mixture of experts: pre_mlp_layernorm, not mlp.linear_fc1.layer_norm
  bool per_layer_keys = false;    // decoder.layers.<i>. without layer axis; always so for mixed dense and MoE layers
  bool default_chunks = true;     // as one rank saves: a chunk per layer, per expert, for gate and for up rows
  std::vector<ChunkRule> chunks;  // after the defaults, later ones win
  WriteOptions write;
};

// The tensors of the model, in Megatron's order. kInvalid when no such model exists (named).
Result<std::vector<TensorToWrite>> plan_model(const CheckpointSpec& spec);

// The arguments that --use-checkpoint-args restores, and those that load_checkpoint compares.
ArgRecord model_args(const CheckpointSpec& spec);

// plan_model, model_args and write_torch_dist.
Status write_checkpoint(const CheckpointSpec& spec, const std::string& folder);

}  // namespace assay::model
