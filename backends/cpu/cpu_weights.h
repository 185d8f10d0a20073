// The weights of a CPU model: copied once into one region, every tensor at a multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/pool/thread_pool.h"
#include "backends/model/weights/weight_map.h"

namespace assay::cpu {

// A view into the region.
struct Matrix {
  const void* data = nullptr;  // (rows, cols); null: the model has none
  size_t rows = 0;
  size_t cols = 0;
  Number number = Number::kFloat32;
};

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
  Linear fc1, fc2;  // dense
  Linear router;    // weight.data null: dense layer
  std::span<const float> expert_bias;
  std::vector<Linear> expert_fc1, expert_fc2;
  Linear shared_fc1, shared_fc2;
  Matrix shared_gate;  // (1, hidden)
};

struct Weights {
  Region region;
  uint64_t bytes = 0;
  Matrix word_embeddings;
  Matrix position_embeddings;
  std::vector<Layer> layers;
  NormWeights final_norm;
  Matrix output;
  std::vector<std::string> unused;  // keys of the checkpoint
};

// Matrices are kept as bf16 in bf16 arithmetic, else as they are stored; vectors as fp32 (rounded to bf16 in bf16
// arithmetic, expert_bias excepted). Read by all threads of `pool`; the checkpoint's pages are given back.
Result<Weights> load_weights(const model::Checkpoint& checkpoint, const model::ModelConfig& config, ThreadPool& pool);

}  // namespace assay::cpu
