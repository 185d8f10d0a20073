#include "backends/cuda/fast/testing/random_model.h"

#include <cmath>

#include "backends/cuda/fast/plain.h"

namespace assay::cuda::fast {

RandomModel::RandomModel(const RandomShape& shape) : shape_(shape) {
  check(cudaStreamCreate(&stream_), "cudaStreamCreate");
  make_model();
  make_rotary();
  make_buffers();
  make_cache();
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
  const auto vocabulary = static_cast<size_t>(shape_.vocabulary);
  model_.groups = shape_.groups;
  model_.heads_per_group = kHidden / kHeadSize / shape_.groups;
  model_.eps = 1e-5f;
  const size_t qkv_rows = kHidden + 2 * static_cast<size_t>(shape_.groups) * kHeadSize;
  for (int i = 0; i < shape_.layers; ++i) {
    const bool dense = i < shape_.dense_layers;
    LayerWeights layer;
    layer.attention_gamma = numbers(kHidden, 1.0f, 0.2f);
    layer.mlp_gamma = numbers(kHidden, 1.0f, 0.2f);
    layer.qkv = weights(qkv_rows, kHidden);
    layer.projection = weights(kHidden, kHidden, 0.5f);
    ExpertWeights& w = layer.experts;
    w.shared_width = dense ? shape_.dense_width : shape_.shared_width;
    w.shared_fc1 = weights(2 * static_cast<size_t>(w.shared_width), kHidden);
    w.shared_fc2 = weights(kHidden, static_cast<size_t>(w.shared_width));
    if (!dense) {
      w.experts = shape_.experts;
      w.topk = shape_.topk;
      w.width = shape_.width;
      w.scaling_factor = shape_.scaling_factor;
      w.router = weights(experts, kHidden);
      w.fc1 = weights(experts * 2 * width, kHidden);
      w.fc2 = weights(experts * kHidden, width);
      if (shape_.expert_bias) w.bias = numbers(experts, 0.0f, 0.2f);
    }
    model_.layers.push_back(layer);
  }
  model_.final_gamma = numbers(kHidden, 1.0f, 0.2f);
  model_.output = weights(vocabulary, kHidden);
  model_.embeddings = weights(vocabulary, kHidden, 20.0f);
  model_.vocabulary = shape_.vocabulary;
}

void RandomModel::make_rotary() {
  constexpr int kTurns = kHeadSize / 2;
  std::vector<float> turns;
  for (int p = 0; p < shape_.positions; ++p) {
    for (const bool sine : {false, true}) {
      for (int i = 0; i < kTurns; ++i) {
        const double angle = p * std::pow(1e6, -static_cast<double>(i) / kTurns);
        turns.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  auto* rotary = take<float>(turns.size());
  check(cudaMemcpy(rotary, turns.data(), turns.size() * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
  model_.rotary = rotary;
}

void RandomModel::make_buffers() {
  const auto tokens = static_cast<size_t>(shape_.tokens);
  args_.model = &model_;
  const StepShape shape = step_shape(model_, shape_.tokens, shape_.positions);
  const size_t bytes = step_memory(shape);
  auto* memory = take<char>(bytes);
  check(cudaMemset(memory, 0, bytes), "cudaMemset");
  args_.buffers = step_buffers(shape, memory);
  args_.ids = take<int32_t>(tokens);
  args_.positions = take<int32_t>(tokens);
  args_.targets = take<int32_t>(tokens);
  args_.logits = take<float>(tokens * static_cast<size_t>(shape_.vocabulary));
  args_.facts = take<RowFacts>(tokens);
  args_.chosen = take<uint16_t>(moe_layers() * tokens * static_cast<size_t>(shape_.topk));
  args_.margins = take<float>(moe_layers() * tokens);
  scratch_ = take<float>(tokens * kHidden);
}

void RandomModel::make_cache() {
  const int blocks = shape_.tokens * shape_.positions / shape_.block_size;
  const size_t rows = static_cast<size_t>(blocks) * static_cast<size_t>(shape_.groups * shape_.block_size);
  args_.layer_bytes = rows * kHeadSize * 2;
  args_.cache.keys = weights(rows * static_cast<size_t>(shape_.layers), kHeadSize, 8.0f);
  args_.cache.values = weights(rows * static_cast<size_t>(shape_.layers), kHeadSize, 8.0f);
  blocks_.resize(static_cast<size_t>(blocks));
  for (int i = 0; i < blocks; ++i) blocks_[static_cast<size_t>(i)] = blocks - 1 - i;
  std::vector<int32_t> tables(static_cast<size_t>(shape_.tokens));
  for (int t = 0; t < shape_.tokens; ++t) {
    tables[static_cast<size_t>(t)] = t * shape_.positions / shape_.block_size;
  }
  auto* device_blocks = take<int32_t>(blocks_.size());
  auto* device_tables = take<int32_t>(tables.size());
  check(cudaMemcpy(device_blocks, blocks_.data(), blocks_.size() * sizeof(int32_t), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  check(cudaMemcpy(device_tables, tables.data(), tables.size() * sizeof(int32_t), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  args_.cache.blocks = device_blocks;
  args_.cache.tables = device_tables;
  args_.cache.block_size = shape_.block_size;
}

void RandomModel::start(int tokens, int position, int spread) {
  args_.tokens = tokens;
  args_.splits = (position + (tokens - 1) * spread) / kSplit + 1;
  args_.routing_stride = tokens;
  position_ = position;
  spread_ = spread;
  std::vector<int32_t> numbers[3];  // positions, ids, targets
  for (int t = 0; t < tokens; ++t) {
    numbers[0].push_back(position + t * spread);
    numbers[1].push_back((7919 * t + 12345) % shape_.vocabulary);
    numbers[2].push_back(t % 3 == 2 ? -1 : (104729 * t + 4099) % shape_.vocabulary);
  }
  const auto count = static_cast<size_t>(tokens);
  int32_t* const to[] = {args_.positions, args_.ids, const_cast<int32_t*>(args_.targets)};
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  for (int i = 0; i < 3; ++i) {
    check(cudaMemcpy(to[i], numbers[i].data(), count * sizeof(int32_t), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  const auto poison = [&](void* at, size_t bytes) {
    check(cudaMemsetAsync(at, 0xff, bytes, stream_), "cudaMemsetAsync");
  };
  poison(args_.logits, count * static_cast<size_t>(shape_.vocabulary) * sizeof(float));
  poison(args_.facts, count * sizeof(RowFacts));
  poison(args_.chosen, moe_layers() * count * static_cast<size_t>(shape_.topk) * sizeof(uint16_t));
  poison(args_.margins, moe_layers() * count * sizeof(float));
  for (void* row : new_rows()) poison(row, kHeadSize * 2);
}

std::vector<void*> RandomModel::new_rows() const {
  std::vector<void*> rows;
  const auto block_size = static_cast<size_t>(shape_.block_size);
  for (void* half : {args_.cache.keys, args_.cache.values}) {
    for (int layer = 0; layer < shape_.layers; ++layer) {
      for (int t = 0; t < args_.tokens; ++t) {
        const auto at = static_cast<size_t>(position_) + static_cast<size_t>(t) * static_cast<size_t>(spread_);
        const auto first = static_cast<size_t>(t * shape_.positions / shape_.block_size);
        const auto block = static_cast<size_t>(blocks_[first + at / block_size]);
        for (int group = 0; group < shape_.groups; ++group) {
          const size_t vector = block * static_cast<size_t>(shape_.groups) + static_cast<size_t>(group);
          rows.push_back(static_cast<char*>(half) + static_cast<size_t>(layer) * args_.layer_bytes +
                         (vector * block_size + at % block_size) * kHeadSize * 2);
        }
      }
    }
  }
  return rows;
}

void RandomModel::step_plain() { plain_step(args_, stream_); }

void RandomModel::step_kernels(bool overlapped) { check(decode_step(args_, {stream_, overlapped}), "decode_step"); }

void RandomModel::step_persistent(const PersistentArgs& own) {
  check(persistent_step(args_, own, stream_), "persistent_step");
}

StepResult RandomModel::result() const {
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  const auto count = static_cast<size_t>(args_.tokens);
  StepResult result;
  const auto copy = [](auto& to, const void* from, size_t size) {
    to.resize(size);
    check(cudaMemcpy(to.data(), from, size * sizeof(to[0]), cudaMemcpyDeviceToHost), "cudaMemcpy");
  };
  copy(result.logits, args_.logits, count * static_cast<size_t>(shape_.vocabulary));
  copy(result.facts, args_.facts, count * sizeof(RowFacts) / sizeof(int32_t));
  copy(result.chosen, args_.chosen, moe_layers() * count * static_cast<size_t>(shape_.topk));
  copy(result.margins, args_.margins, moe_layers() * count);
  for (size_t t = 0; t < count; ++t) {
    // A target's logit means nothing where there is no target.
    if (t % 3 == 2) result.facts[t * 5 + 2] = 0;
  }
  for (const void* row : new_rows()) {
    std::vector<uint16_t> numbers;
    copy(numbers, row, kHeadSize);
    result.cache.insert(result.cache.end(), numbers.begin(), numbers.end());
  }
  return result;
}

}  // namespace assay::cuda::fast
