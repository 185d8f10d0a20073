// A model of the fast path with random weights that the device fills, and all that its steps work in. For tests and
// benchmarks.
#pragma once

#include <vector>

#include "backends/cuda/fast/persistent.h"
#include "backends/cuda/fast/step.h"
#include "backends/cuda/runtime/buffer.h"

namespace assay::cuda::fast {

// The defaults: the 16B mixture of experts.
struct RandomShape {
  int layers = 27;
  int dense_layers = 1;  // the first ones, without experts
  int dense_width = 10944;
  int groups = 16;
  int experts = 64;
  int topk = 6;
  int width = 1408;
  int shared_width = 2816;
  bool expert_bias = false;
  float scaling_factor = 1.0f;
  int vocabulary = 131072;
  int positions = 4352;  // a sequence can have, a multiple of block_size
  int block_size = 64;
  int tokens = 8;  // of a step, at most
};

// What a step leaves behind.
struct StepResult {
  std::vector<float> logits;     // (tokens, vocabulary)
  std::vector<int32_t> facts;    // (tokens, 5) the bits of RowFacts
  std::vector<uint16_t> chosen;  // (layers with experts, tokens, topk)
  std::vector<float> margins;    // (layers with experts, tokens)
  std::vector<uint16_t> cache;   // keys and values of the new positions: (2, layers, tokens, groups, kHeadSize)
};

class RandomModel {
 public:
  explicit RandomModel(const RandomShape& shape);  // throws CudaError
  ~RandomModel();
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  // Before a step: `tokens` sequences, the t-th with its new token at position + t * spread; results are poisoned.
  void start(int tokens, int position, int spread = 0);

  // One step in one of three ways, all the same bits.
  void step_plain();
  void step_kernels(bool overlapped);
  void step_persistent(const PersistentArgs& own = {});

  StepResult result() const;  // after all work

  const RandomShape& shape() const { return shape_; }
  const ModelWeights& model() const { return model_; }
  StepArgs& args() { return args_; }
  float* scratch() const { return scratch_; }  // (tokens, kHidden)
  cudaStream_t stream() const { return stream_; }

 private:
  template <class T>
  T* take(size_t count);
  void* weights(size_t rows, size_t k, float gain = 1.0f);
  float* numbers(size_t count, float middle, float spread);
  void make_model();
  void make_rotary();
  void make_buffers();
  void make_cache();
  std::vector<void*> new_rows() const;  // of the cache, that a step writes
  size_t moe_layers() const { return static_cast<size_t>(shape_.layers - shape_.dense_layers); }

  RandomShape shape_;
  std::vector<DeviceBuffer<char>> memory_;
  uint64_t seed_ = 0;
  ModelWeights model_;
  StepArgs args_;
  std::vector<int32_t> blocks_;  // of all sequences
  int position_ = 0;
  int spread_ = 0;
  float* scratch_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// Random numbers, uniform in [-scale, scale) or [middle - spread, middle + spread).
void fill_bf16(void* to, size_t count, float scale, uint64_t seed, cudaStream_t stream);
void fill_float(float* to, size_t count, float middle, float spread, uint64_t seed, cudaStream_t stream);

}  // namespace assay::cuda::fast
