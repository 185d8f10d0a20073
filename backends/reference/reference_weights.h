// The weights of the reference model: everything as fp32, rounded to bf16 first where the arithmetic says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/config/model_config.h"
#include "backends/model/weights/weight_map.h"

namespace assay::reference {

struct Linear {
  size_t rows = 0;
  size_t cols = 0;
  std::vector<float> weight;  // (rows, cols)
  std::vector<float> bias;    // (rows) or empty
};

struct NormWeights {
  std::vector<float> gamma;  // (width); 1 is already added where the model says so; empty: no norm
  std::vector<float> beta;   // (width) or empty
};

struct Layer {
  NormWeights attention_norm, q_norm, k_norm, mlp_norm;
  Linear qkv, proj;
  Linear fc1, fc2;                 // dense
  Linear router;                   // empty weight: dense layer
  std::vector<float> expert_bias;  // (experts) or empty; never rounded
  std::vector<Linear> expert_fc1, expert_fc2;
  Linear shared_fc1, shared_fc2;
  std::vector<float> shared_gate;  // (hidden) or empty
};

struct Weights {
  std::vector<float> word_embeddings;      // (vocab, hidden)
  std::vector<float> position_embeddings;  // (max_position_embeddings, hidden) or empty
  std::vector<Layer> layers;
  NormWeights final_norm;
  Linear output;                    // (vocab, hidden)
  uint64_t bytes = 0;               // of all of the above
  std::vector<std::string> unused;  // keys of the checkpoint
};

Result<Weights> load_weights(const model::Checkpoint& checkpoint, const model::ModelConfig& config);

}  // namespace assay::reference
