#include "backends/cuda/fast/testing/random_model.h"

#include <cmath>

#include "backends/cuda/fast/plain.h"

namespace assay::cuda::fast {

RandomModel::RandomModel(const RandomShape& shape) : shape_(shape) {
  check(cudaStreamCreate(&stream_), "cudaStreamCreate");
  make_model();
  make_buffers();
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

RandomModel::~RandomModel() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

template <class T>
T* RandomModel::take(size_t count) {
  memory_.emplace_back(count * sizeof(T));
  return reinterpret_cast<T*>(memory_.back().data());
}

void* RandomModel::weights(size_t rows, size_t k, float gain) {
  auto* data = take<uint16_t>(rows * k);
  fill_bf16(data, rows * k, gain * std::sqrt(3.0f / static_cast<float>(k)), ++seed_ << 40, stream_);
  return data;
}

float* RandomModel::numbers(size_t count, float middle, float spread) {
  auto* data = take<float>(count);
  fill_float(data, count, middle, spread, ++seed_ << 40, stream_);
  return data;
}

void RandomModel::make_model() {
  const auto experts = static_cast<size_t>(shape_.experts);
  const auto width = static_cast<size_t>(shape_.width);
  const auto shared_width = static_cast<size_t>(shape_.shared_width);
  const auto vocabulary = static_cast<size_t>(shape_.vocabulary);
  model_.groups = shape_.groups;
  model_.heads_per_group = 1;
  model_.eps = 1e-5f;
  for (int i = 0; i < shape_.layers; ++i) {
    LayerWeights layer;
    layer.attention_gamma = numbers(kHidden, 1.0f, 0.2f);
    layer.mlp_gamma = numbers(kHidden, 1.0f, 0.2f);
    layer.qkv = weights(3 * kHidden, kHidden);
    layer.projection = weights(kHidden, kHidden, 0.5f);
    ExpertWeights& w = layer.experts;
    w.experts = shape_.experts;
    w.topk = shape_.topk;
    w.width = shape_.width;
    w.shared_width = shape_.shared_width;
    w.router = weights(experts, kHidden);
    w.fc1 = weights(experts * 2 * width, kHidden);
    w.fc2 = weights(experts * kHidden, width);
    w.shared_fc1 = weights(2 * shared_width, kHidden);
    w.shared_fc2 = weights(kHidden, shared_width);
    model_.layers.push_back(layer);
  }
  model_.final_gamma = numbers(kHidden, 1.0f, 0.2f);
  model_.output = weights(vocabulary, kHidden);
  model_.embeddings = weights(vocabulary, kHidden, 20.0f);
  model_.vocabulary = shape_.vocabulary;
  constexpr int kTurns = kHeadSize / 2;
  std::vector<float2> turns;
  for (int p = 0; p < shape_.positions; ++p) {
    for (int i = 0; i < kTurns; ++i) {
      const double angle = p * std::pow(1e6, -static_cast<double>(i) / kTurns);
      turns.push_back(make_float2(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))));
    }
  }
  auto* rotary = take<float2>(turns.size());
  check(cudaMemcpy(rotary, turns.data(), turns.size() * sizeof(float2), cudaMemcpyHostToDevice), "cudaMemcpy");
  model_.rotary = rotary;
}

void RandomModel::make_buffers() {
  const auto tokens = static_cast<size_t>(shape_.tokens);
  const auto vocabulary = static_cast<size_t>(shape_.vocabulary);
  const auto splits = static_cast<size_t>((shape_.positions + kSplit - 1) / kSplit);
  const auto inner = static_cast<size_t>(shape_.topk) * static_cast<size_t>(shape_.width);
  const auto shared_width = static_cast<size_t>(shape_.shared_width);
  const size_t counters = 1 + tokens * static_cast<size_t>(1 + shape_.groups);
  args_.model = &model_;
  StepBuffers& b = args_.buffers;
  b.x = take<float>(tokens * kHidden);
  b.qkv = take<float>(tokens * 3 * kHidden);
  b.attended = take<uint16_t>(tokens * kHidden);
  b.splits = take<SplitResult>(tokens * static_cast<size_t>(shape_.groups) * splits);
  b.router_logits = take<float>(tokens * static_cast<size_t>(shape_.experts));
  b.inner = take<uint16_t>(tokens * inner + kSegment);
  b.shared_inner = take<uint16_t>(tokens * shared_width + kSegment);
  b.logits = take<uint16_t>(tokens * vocabulary);
  b.segments = take<SegmentResult>(tokens * vocabulary / kVocabularySegment);
  b.counters = take<uint32_t>(counters);
  b.ids = take<int32_t>(tokens);
  b.positions = take<int32_t>(tokens);
  b.logprobs = take<float>(tokens);
  counters_ = take<uint32_t>(kPersistentCounters);
  const size_t numbers_of_workspace = tokens * static_cast<size_t>(persistent_workspace(3 * kHidden));
  workspace_ = take<uint64_t>(numbers_of_workspace);
  check(cudaMemset(b.counters, 0, counters * sizeof(uint32_t)), "cudaMemset");
  check(cudaMemset(counters_, 0, kPersistentCounters * sizeof(uint32_t)), "cudaMemset");
  check(cudaMemset(workspace_, 0, numbers_of_workspace * sizeof(uint64_t)), "cudaMemset");
  embedded_ = numbers(tokens * kHidden, 0.0f, 1.0f);
  scratch_ = take<float>(tokens * (3 * kHidden + 2 * inner + 3 * shared_width + 8 * kHidden) + vocabulary);

  const int blocks = shape_.tokens * shape_.positions / kBlockSize;
  const size_t rows = static_cast<size_t>(blocks) * static_cast<size_t>(shape_.groups) * kBlockSize;
  args_.layer_bytes = rows * kHeadSize * 2;
  args_.keys = weights(rows * static_cast<size_t>(shape_.layers), kHeadSize, 8.0f);
  args_.values = weights(rows * static_cast<size_t>(shape_.layers), kHeadSize, 8.0f);
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  for (int i = 0; i < blocks; ++i) table[static_cast<size_t>(i)] = blocks - 1 - i;
  auto* device_table = take<int32_t>(table.size());
  check(cudaMemcpy(device_table, table.data(), table.size() * sizeof(int32_t), cudaMemcpyHostToDevice), "cudaMemcpy");
  args_.table = device_table;
  args_.table_stride = shape_.positions / kBlockSize;
  args_.block_size = kBlockSize;
}

void RandomModel::start(int tokens, int position, int spread) {
  args_.tokens = tokens;
  args_.splits = (position + (tokens - 1) * spread) / kSplit + 1;
  std::vector<int32_t> positions;
  positions.reserve(static_cast<size_t>(tokens));
  for (int t = 0; t < tokens; ++t) positions.push_back(position + t * spread);
  const StepBuffers& b = args_.buffers;
  const auto count = static_cast<size_t>(tokens);
  check(cudaMemcpyAsync(b.positions, positions.data(), count * sizeof(int32_t), cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync");
  check(cudaMemcpyAsync(b.x, embedded_, count * kHidden * sizeof(float), cudaMemcpyDeviceToDevice, stream_),
        "cudaMemcpyAsync");
  check(cudaMemsetAsync(b.logits, 0xff, count * static_cast<size_t>(shape_.vocabulary) * 2, stream_),
        "cudaMemsetAsync");
}

void RandomModel::step_plain() {
  plain_step(args_, scratch_, stream_);
  check(cudaGetLastError(), "plain_step");
}

void RandomModel::step_kernels(bool overlapped) { check(decode_step(args_, {stream_, overlapped}), "decode_step"); }

void RandomModel::step_persistent(int in_flight, long long* times) {
  check(persistent_step(args_, {counters_, workspace_, in_flight, times}, stream_), "persistent_step");
}

std::vector<uint16_t> RandomModel::logits() const {
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  std::vector<uint16_t> values(static_cast<size_t>(args_.tokens) * static_cast<size_t>(shape_.vocabulary));
  check(cudaMemcpy(values.data(), args_.buffers.logits, values.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return values;
}

size_t RandomModel::step_bytes(int position, int active) const {
  size_t bytes = static_cast<size_t>(shape_.vocabulary) * kHidden * 2;
  for (const LayerWeights& layer : model_.layers) {
    bytes += size_t{4} * kHidden * kHidden * 2 + up_bytes(layer.experts, active) + down_bytes(layer.experts, active) +
             attention_bytes(shape_.groups, position);
  }
  return bytes;
}

}  // namespace assay::cuda::fast
