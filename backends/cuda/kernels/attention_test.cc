// Heads and attention on the device against the reference's operators, bit for bit.
#include "backends/cuda/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"
#include "backends/reference/arithmetic/formats.h"
#include "backends/reference/operators.h"

namespace assay::cuda {
namespace {

using Floats = std::vector<float>;

struct Shape {
  int channels;
  int groups;
  int per_group;
  int block_size;
  int length;  // positions of the sequence
  bool bf16;
};

// One sequence in layer 1 of 2, its blocks in descending order; keys and values given.
class Sequence {
 public:
  explicit Sequence(const Shape& shape)
      : s_(shape),
        blocks_((shape.length + shape.block_size - 1) / shape.block_size),
        size_(static_cast<size_t>(2 * blocks_ * shape.groups * shape.block_size * shape.channels)) {
    for (int b = 0; b < blocks_; ++b) table_.push_back(blocks_ - 1 - b);
  }

  size_t size() const { return size_; }
  size_t place(int group, int position) const {
    const int block = table_[static_cast<size_t>(position / s_.block_size)];
    const int head = (blocks_ + block) * s_.groups + group;
    return static_cast<size_t>(head * s_.block_size + position % s_.block_size) * static_cast<size_t>(s_.channels);
  }
  CacheView view(void* keys, void* values) const {
    return {keys, values, s_.bf16, s_.groups, s_.channels, s_.block_size, blocks_};
  }
  // Tokens at these positions; `storage` keeps what they point to.
  Tokens tokens(const std::vector<int32_t>& positions, DeviceBuffer<int32_t>& storage) const {
    std::vector<int32_t> ints = positions;
    ints.insert(ints.end(), positions.size(), 0);
    ints.insert(ints.end(), table_.begin(), table_.end());
    storage = upload(ints);
    const auto count = static_cast<ptrdiff_t>(positions.size());
    return {static_cast<int>(count), storage.data(), storage.data() + count, storage.data() + 2 * count, s_.length};
  }

 private:
  Shape s_;
  int blocks_;
  size_t size_;
  std::vector<int32_t> table_;
};

class AttentionKernel : public OnDevice {};

// bf16 has an arithmetic of its own: attention_bf16_test.cc.
TEST_F(AttentionKernel, EveryFp32QueryGetsTheBitsOfTheReference) {
  const Shape shapes[] = {
      {20, 2, 3, 7, 600, false}, {128, 1, 2, 16, 300, false}, {16, 2, 1, 1, 40, false}, {300, 1, 1, 256, 257, false}};
  for (const Shape& s : shapes) {
    const Sequence sequence(s);
    const int heads = s.groups * s.per_group;
    const auto channels = static_cast<size_t>(s.channels);
    Floats keys = some_floats(sequence.size(), 1);
    const Floats values = some_floats(sequence.size(), 2);
    for (float& k : keys) k *= 3;
    const std::vector<int32_t> positions{s.length - 1, 0, std::min(255, s.length - 1), s.length / 2};
    const Floats queries = some_floats(positions.size() * static_cast<size_t>(heads) * channels, 3);
    const float scale = 1.0f / std::sqrt(static_cast<float>(s.channels));
    Floats expected;
    for (size_t t = 0; t < positions.size(); ++t) {
      for (int h = 0; h < heads; ++h) {
        const auto at = [&](const Floats& store) {
          return [&, h](size_t p) { return &store[sequence.place(h / s.per_group, static_cast<int>(p))]; };
        };
        const std::span<const float> query(
            &queries[(t * static_cast<size_t>(heads) + static_cast<size_t>(h)) * channels], channels);
        const auto y =
            reference::attend(query, static_cast<size_t>(positions[t]) + 1, at(keys), at(values), scale, false);
        expected.insert(expected.end(), y.begin(), y.end());
      }
    }
    const auto device_keys = upload(keys);
    const auto device_values = upload(values);
    const auto device_queries = upload(queries);
    const auto y = upload(Floats(expected.size(), NAN));
    DeviceBuffer<int32_t> storage;
    AttendArgs args{.queries = device_queries.data()};
    args.cache = sequence.view(device_keys.data(), device_values.data());
    args.tokens = sequence.tokens(positions, storage);
    args.layer = 1;
    args.per_group = s.per_group;
    args.scale = scale;
    DeviceBuffer<float> splits(split_floats(args.tokens.count, heads, s.channels, s.length));
    args.splits = splits.data();
    args.y = {y.data(), heads * s.channels, false};
    attend(args, nullptr);
    EXPECT_TRUE(same_bits(download(y), expected)) << s.channels << " channels, " << s.length << " positions";
  }
}

struct HeadsCase {
  int channels;
  int half;  // of the rotated channels
  bool interleaved;
  model::Norm norm;
  bool normed = true;
};

std::string name(const HeadsCase& c) {
  return std::to_string(c.channels) + " channels, half " + std::to_string(c.half) +
         (c.interleaved ? ", interleaved" : "") + (c.normed ? "" : ", no norm");
}

// Two tokens of two groups of three query heads through prepare_heads() and through the reference's operators.
void compare_heads(const HeadsCase& c, bool bf16) {
  const Shape s{c.channels, 2, 3, 7, 30, bf16};
  const Sequence sequence(s);
  const auto channels = static_cast<size_t>(c.channels);
  const auto half = static_cast<size_t>(c.half);
  const std::vector<int32_t> positions{29, 3};
  const size_t heads = 2 * (3 + 2);
  const Floats qkv = some_floats(positions.size() * heads * channels, 4);
  const Floats rotary = some_floats(30 * 2 * half + 1, 5);
  model::ModelConfig config;
  config.norm = c.norm;
  const bool centred = c.norm == model::Norm::kLayerNorm;
  const auto weights = [&](uint32_t seed) {
    return reference::NormWeights{some_floats(channels, seed), centred ? some_floats(channels, seed + 1) : Floats()};
  };
  const reference::NormWeights q_norm = weights(6);
  const reference::NormWeights k_norm = weights(8);
  const auto rounded = [&](Floats y) {
    for (float& v : y) v = bf16 ? arithmetic::round_bf16(v) : v;
    return y;
  };
  const auto prepared = [&](const reference::NormWeights& norm, size_t first, size_t t) {
    const std::span<const float> head(&qkv[first], channels);
    Floats y = c.normed ? reference::normalise(config, norm, head, false) : Floats(head.begin(), head.end());
    const float* cosine = &rotary[static_cast<size_t>(positions[t]) * 2 * half];
    if (half > 0) reference::rotate(y, {cosine, half}, {cosine + half, half}, c.interleaved);
    return rounded(y);
  };
  Floats queries;
  Floats keys(sequence.size(), 0.0f);
  Floats values(sequence.size(), 0.0f);
  for (size_t t = 0; t < positions.size(); ++t) {
    for (int g = 0; g < 2; ++g) {
      const size_t first = (t * heads + static_cast<size_t>(g) * 5) * channels;
      for (size_t h = 0; h < 3; ++h) {
        const Floats q = prepared(q_norm, first + h * channels, t);
        queries.insert(queries.end(), q.begin(), q.end());
      }
      const auto place = static_cast<ptrdiff_t>(sequence.place(g, positions[t]));
      const Floats k = prepared(k_norm, first + 3 * channels, t);
      std::copy(k.begin(), k.end(), keys.begin() + place);
      const auto v = qkv.begin() + static_cast<ptrdiff_t>(first + 4 * channels);
      const Floats value = rounded(Floats(v, v + static_cast<ptrdiff_t>(channels)));
      std::copy(value.begin(), value.end(), values.begin() + place);
    }
  }
  const auto device_qkv = upload(qkv);
  const auto device_rotary = upload(rotary);
  const auto out = upload(Floats(queries.size(), NAN));  // bf16: half of it
  const auto k_gamma = upload(k_norm.gamma);
  const auto k_beta = upload(k_norm.beta);
  const auto q_gamma = upload(q_norm.gamma);
  const auto q_beta = upload(q_norm.beta);
  const auto stored_keys = upload(Floats(sequence.size(), 0.0f));  // bf16: half of it
  const auto stored_values = upload(Floats(sequence.size(), 0.0f));
  DeviceBuffer<int32_t> storage;
  HeadsArgs args{.qkv = device_qkv.data(), .queries = out.data()};
  args.cache = sequence.view(stored_keys.data(), stored_values.data());
  args.tokens = sequence.tokens(positions, storage);
  args.layer = 1;
  args.per_group = 3;
  if (c.normed) args.q_norm = {q_gamma.data(), q_beta.data()};
  if (c.normed) args.k_norm = {k_gamma.data(), k_beta.data()};
  args.epsilon = static_cast<float>(config.norm_epsilon);
  args.centred = centred;
  args.rotary = device_rotary.data();
  args.half = c.half;
  args.interleaved = c.interleaved;
  prepare_heads(args, nullptr);
  const auto stored = [&](const DeviceBuffer<float>& memory) {
    Floats all = download(memory);
    if (!bf16) return all;
    std::vector<uint16_t> bits(all.size());
    std::memcpy(bits.data(), all.data(), bits.size() * 2);
    for (size_t i = 0; i < bits.size(); ++i) all[i] = arithmetic::from_bf16(bits[i]);
    return all;
  };
  EXPECT_TRUE(same_bits(stored(out), queries)) << name(c) << ", bf16 " << bf16;
  EXPECT_TRUE(same_bits(stored(stored_keys), keys)) << name(c) << ", bf16 " << bf16;
  EXPECT_TRUE(same_bits(stored(stored_values), values)) << name(c) << ", bf16 " << bf16;
}

TEST_F(AttentionKernel, PreparedHeadsHaveTheBitsOfTheReference) {
  using enum model::Norm;
  const HeadsCase cases[] = {
      {20, 6, false, kLayerNorm},       {20, 6, true, kLayerNorm},        {64, 32, false, kRmsNorm},
      {96, 48, false, kLayerNorm},      {96, 16, false, kRmsNorm},        {128, 64, false, kRmsNorm},
      {128, 32, false, kRmsNorm},       {128, 64, true, kLayerNorm},      {128, 20, true, kRmsNorm},
      {128, 20, false, kLayerNorm},     {256, 128, false, kRmsNorm},      {256, 32, false, kLayerNorm},
      {300, 50, false, kRmsNorm},       {128, 0, false, kLayerNorm},      {128, 64, false, kRmsNorm, false},
      {64, 32, true, kRmsNorm, false},  {16, 8, false, kRmsNorm, false},  {128, 32, false, kRmsNorm, false},
      {40, 12, false, kRmsNorm, false}, {128, 0, false, kRmsNorm, false}, {128, 64, true, kRmsNorm, false},
      {20, 10, false, kRmsNorm, false}};
  for (const HeadsCase& c : cases) {
    for (const bool bf16 : {false, true}) compare_heads(c, bf16);
  }
}

}  // namespace
}  // namespace assay::cuda
