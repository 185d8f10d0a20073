// Where every weight of a model lies in a checkpoint: keys, fixed leading indices and checked shapes; no data.
//
//   auto map = map_weights(checkpoint->contents(), config);
//   std::vector<float> gamma(hidden);
//   Status s = read_weight(*checkpoint, map->layers[3].mlp_norm.gamma, Dtype::kFloat32, gamma.data());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/checkpoint_stream.h"
#include "backends/model/config/model_config.h"

namespace assay::model {

// `rows` rows of one stored tensor, after fixing its leading indices (layer, expert).
struct Piece {
  std::string key;
  std::vector<int64_t> leading;
  int64_t rows = 0;
};

// A matrix (rows, cols) or a vector (rows, cols == 1): its pieces one below the other; rows that no piece covers are
// zero (a vocabulary padded further than the checkpoint's).
struct WeightRef {
  std::vector<Piece> pieces;  // empty: the model has no such weight
  int64_t rows = 0;
  int64_t cols = 0;
  Dtype stored = Dtype::kOther;

  bool present() const { return !pieces.empty(); }
  int64_t elements() const { return rows * cols; }
};

struct NormRef {
  WeightRef gamma;  // (width)
  WeightRef beta;   // (width); LayerNorm only
};

struct LinearRef {
  WeightRef weight;  // (out, in)
  WeightRef bias;    // (out)
};

// f: ffn_hidden_size of the layer's kind; g: 2 for gated activations, else 1.
struct LayerRefs {
  NormRef attention_norm;             // (hidden)
  LinearRef qkv;                      // ((heads + 2 groups) * kv_channels, hidden)
  LinearRef proj;                     // (hidden, heads * kv_channels)
  NormRef q_norm, k_norm;             // (kv_channels)
  NormRef mlp_norm;                   // (hidden)
  LinearRef fc1, fc2;                 // dense: (g f, hidden), (hidden, f)
  LinearRef router;                   // (experts, hidden)
  WeightRef expert_bias;              // (experts)
  std::vector<LinearRef> expert_fc1;  // (experts) of (g f, hidden)
  std::vector<LinearRef> expert_fc2;  // (experts) of (hidden, f)
  LinearRef shared_fc1, shared_fc2;
  WeightRef shared_gate;  // (1, hidden)
};

struct WeightMap {
  WeightRef word_embeddings;      // (vocab, hidden)
  WeightRef position_embeddings;  // (max_position_embeddings, hidden)
  std::vector<LayerRefs> layers;  // (num_layers)
  NormRef final_norm;
  WeightRef output;                 // (vocab, hidden); the word embeddings when tied
  std::vector<std::string> unused;  // keys of tensors that this model does not use, sorted
};

// Fails with kInvalid: a weight is missing (the keys tried and the nearest key of the checkpoint), its shape is not
// what the arguments say (key, both shapes, the arguments), or kUnsupported: its dtype is no weight's.
Result<WeightMap> map_weights(const CheckpointContents& contents, const ModelConfig& config);

// Copies a present weight to `dst` (rows * cols of `out`, row-major), zero rows included. Failures: Checkpoint::read.
Status read_weight(const Checkpoint& checkpoint, const WeightRef& weight, Dtype out, void* dst);

// The same for the rows [begin, end) alone.
Status read_weight_rows(const Checkpoint& checkpoint, const WeightRef& weight, int64_t begin, int64_t end, Dtype out,
                        void* dst);

// Rows [begin, end) as `out` to `dst`.
struct WeightRows {
  int64_t begin = 0;
  int64_t end = 0;
  Dtype out = Dtype::kFloat32;
  void* dst = nullptr;
};

// The same through a stream. Failures: CheckpointStream::read.
Status stream_weight_rows(CheckpointStream& stream, CheckpointStream::Reader& reader, const WeightRef& weight,
                          const WeightRows& rows);

}  // namespace assay::model
