// The models that the CPU benches measure: random checkpoints of about 1 GB, written once below the temporary folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/model/config/model_config.h"
#include "backends/model/weights/weight_map.h"
#include "backends/reference/border/model.h"

namespace assay::bench {

// A dense model and a mixture of experts, at least 1 GB of weights in `dtype`; bf16 weights bring bf16 arithmetic.
model::ModelConfig dense_config(model::Dtype dtype);
model::ModelConfig moe_config(model::Dtype dtype);

// Ends the program with the status's message.
[[noreturn]] void give_up(const Status& status);

// The folder of the model's checkpoint, written when it is not there yet. `name` tells models of one dtype apart.
std::string checkpoint_of(const std::string& name, const model::ModelConfig& config, model::Dtype dtype);

// Bytes of weights that a forward pass of many tokens reads: everything but the word embeddings.
double bytes_read(const backend::Model& model, model::Dtype dtype);

// Multiply-adds of one token of a prompt in the linear layers: of a mixture the chosen experts alone, and without the
// output layer, which works for a prompt's last token only. Attention is not counted.
double multiply_adds_a_token(const backend::Model& model, model::Dtype dtype);

// What one decoded token needs, computed from the shapes: of a mixture the router and the chosen experts.
struct Work {
  double bytes_a_token = 0;  // of weights in linear layers
  double multiply_adds = 0;  // in them
};
Work work_of(const model::ModelConfig& config, model::Dtype dtype);

struct Scores {
  std::vector<int32_t> argmax;         // (count)
  std::vector<float> argmax_logprobs;  // (count) nats
  std::vector<float> next_logprobs;    // (count) nats
};

// One open model with a cache for `sequences` of at most `tokens` each. Failure ends the program.
class OpenModel {
 public:
  OpenModel(const model::ModelConfig& config, const std::string& checkpoint, const std::string& options,
            uint32_t sequences, uint32_t tokens);

  backend::Model& model() { return *model_; }

  // Runs `count` ids of each of the sequences [0, sequences) from position `start` on; samples greedily.
  // ids: (sequences, count). Returns the sampled ids (sequences).
  std::vector<int32_t> forward(const std::vector<int32_t>& ids, uint32_t sequences, uint32_t start);

  // Passes `ids` through sequence 0 from position 0 on and tells, at each position, the likeliest next id and how
  // likely it and the next of `ids` are (the last one of the first).
  Scores score(const std::vector<int32_t>& ids);

 private:
  std::unique_ptr<backend::Model> model_;
  std::unique_ptr<backend::Cache> cache_;
  std::vector<std::vector<int32_t>> blocks_;  // of each sequence
};

}  // namespace assay::bench
