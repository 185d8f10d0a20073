// What a forward pass cannot do without, computed from the shape of the model alone.
#pragma once

#include <cstdint>

#include "backends/model/config/model_config.h"

namespace assay::bench {

uint64_t parameters(const model::ModelConfig& config);  // of all weights

// One step of `sequences` sequences whose new token is at position `position` (0-based) and which choose `experts`
// distinct experts of a mixture between them. `number`: bytes of a stored weight; keys and values are stored in the
// arithmetic's number.
struct StepWork {
  double weight_bytes = 0;  // matrices that the tokens need, each once; embeddings' rows and vectors are left out
  double cache_bytes = 0;   // keys and values up to the new token
  double bytes() const { return weight_bytes + cache_bytes; }
};
StepWork decode_work(const model::ModelConfig& config, double number, double sequences, double position,
                     double experts);

// Floating-point operations of a prompt of `tokens` tokens, the output layer for the last one alone; a multiply-add
// counts two.
double prefill_flops(const model::ModelConfig& config, double tokens);

}  // namespace assay::bench
