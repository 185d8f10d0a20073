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
  int groups = 16;
  int experts = 64;
  int topk = 6;
  int width = 1408;
  int shared_width = 2816;
  int vocabulary = 131072;
  int positions = 4352;  // a sequence can have, a multiple of kBlockSize
  int tokens = 8;        // of a step, at most
};

class RandomModel {
 public:
  static constexpr int kBlockSize = 64;

  explicit RandomModel(const RandomShape& shape);  // throws CudaError
  ~RandomModel();
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  // Before a step: `tokens` sequences, the t-th with its new token at position + t * spread; logits are poisoned.
  void start(int tokens, int position, int spread = 0);

  // One step in one of three ways, all the same bits; in_flight: see persistent_step.
  void step_plain();
  void step_kernels(bool overlapped);
  void step_persistent(int in_flight = kInFlight, long long* times = nullptr);

  std::vector<uint16_t> logits() const;               // (tokens, vocabulary) bf16, after all work
  size_t step_bytes(int position, int active) const;  // declared bytes of a step of one token

  const RandomShape& shape() const { return shape_; }
  const ModelWeights& model() const { return model_; }
  StepArgs& args() { return args_; }
  const float* embedded() const { return embedded_; }  // (tokens, kHidden)
  float* scratch() const { return scratch_; }
  cudaStream_t stream() const { return stream_; }

 private:
  template <class T>
  T* take(size_t count);
  void* weights(size_t rows, size_t k, float gain = 1.0f);
  float* numbers(size_t count, float middle, float spread);
  void make_model();
  void make_buffers();

  RandomShape shape_;
  std::vector<DeviceBuffer<char>> memory_;
  uint64_t seed_ = 0;
  ModelWeights model_;
  StepArgs args_;
  float* embedded_ = nullptr;
  float* scratch_ = nullptr;
  uint32_t* counters_ = nullptr;   // of the persistent kernel
  uint64_t* workspace_ = nullptr;  // likewise
  cudaStream_t stream_ = nullptr;
};

// Random numbers, uniform in [-scale, scale) or [middle - spread, middle + spread).
void fill_bf16(void* to, size_t count, float scale, uint64_t seed, cudaStream_t stream);
void fill_float(float* to, size_t count, float middle, float spread, uint64_t seed, cudaStream_t stream);

}  // namespace assay::cuda::fast
