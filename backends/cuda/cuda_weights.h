// The weights of a CUDA model: one region of device memory, every tensor at a multiple of 256 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/cuda/kernels/types.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/device.h"
#include "backends/model/weights/weight_map.h"

namespace assay::cuda {

// Views into the region.
struct Linear {
  Matrix weight;
  const float* bias = nullptr;  // (rows) or null
};

struct NormWeights {
  const float* gamma = nullptr;  // (width), 1 already added where the model says so; null: no norm
  const float* beta = nullptr;   // (width) or null
};

struct Layer {
  NormWeights attention_norm, q_norm, k_norm, mlp_norm;
  Linear qkv, proj;
  Linear fc1, fc2;                     // dense
  Linear router;                       // weight.data null: dense layer
  const float* expert_bias = nullptr;  // (experts) or null
  Linear expert_fc1, expert_fc2;       // of expert 0; the others follow, weight.bytes() and rows apart
  Linear shared_fc1, shared_fc2;
  Matrix shared_gate;  // (1, hidden)
};

struct Weights {
  DeviceBuffer<std::byte> region;
  Matrix word_embeddings;
  Matrix position_embeddings;
  std::vector<Layer> layers;
  NormWeights final_norm;
  Matrix output;
  std::vector<std::string> unused;  // keys of the checkpoint
};

// Matrices: bf16 tiles in bf16 arithmetic, else row-major as they are stored; vectors as fp32 (rounded to bf16 in bf16
// arithmetic, expert_bias excepted). Read by `threads` threads through pinned buffers. kExhausted when they do not fit
// (needed and free bytes). Throws CudaError.
Result<Weights> load_weights(const model::Checkpoint& checkpoint, const model::ModelConfig& config,
                             const Device& device, int threads);

// The same layout with numbers that the device makes up (random_weights.h): matrices and biases of standard deviation
// 0.02, gammas around 1, word embeddings of standard deviation 1 where they are not tied, no expert bias; so logits are
// finite and experts chosen about evenly. kInvalid for a model that no checkpoint can hold. Throws CudaError.
Result<Weights> random_weights(const model::ModelConfig& config, uint64_t seed);

}  // namespace assay::cuda
