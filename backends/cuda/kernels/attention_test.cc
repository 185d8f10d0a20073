// Heads and attention on the device against the reference's operators, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cuda/kernels/attend_many.h"
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

std::vector<uint16_t> narrow(const Floats& values) {
  std::vector<uint16_t> bits;
  for (const float v : values) bits.push_back(arithmetic::to_bf16(v));
  return bits;
}

class AttentionKernel : public OnDevice {};

TEST_F(AttentionKernel, EveryQueryGetsTheBitsOfTheReference) {
  const Shape shapes[] = {
      {20, 2, 3, 7, 600, false}, {128, 1, 2, 16, 300, true}, {16, 2, 1, 1, 40, true}, {300, 1, 1, 256, 257, false}};
  for (const Shape& s : shapes) {
    const Sequence sequence(s);
    const int heads = s.groups * s.per_group;
    const auto channels = static_cast<size_t>(s.channels);
    Floats keys = some_floats(sequence.size(), 1);
    Floats values = some_floats(sequence.size(), 2);
    for (float& k : keys) k *= 3;
    if (s.bf16) {
      for (float& k : keys) k = arithmetic::round_bf16(k);
      for (float& v : values) v = arithmetic::round_bf16(v);
    }
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
            reference::attend(query, static_cast<size_t>(positions[t]) + 1, at(keys), at(values), scale, s.bf16);
        expected.insert(expected.end(), y.begin(), y.end());
      }
    }
    const auto wide_keys = upload(keys);
    const auto wide_values = upload(values);
    const auto narrow_keys = upload(narrow(keys));
    const auto narrow_values = upload(narrow(values));
    const auto device_queries = upload(queries);
    const int width = heads * s.channels;
    const int stride = s.bf16 ? round_up(width, kTile) : width;
    const auto wide = upload(Floats(expected.size(), NAN));
    const auto bits = upload(std::vector<uint16_t>(positions.size() * static_cast<size_t>(stride), 0x7fc0u));
    DeviceBuffer<int32_t> storage;
    AttendArgs args{.queries = device_queries.data()};
    args.cache = s.bf16 ? sequence.view(narrow_keys.data(), narrow_values.data())
                        : sequence.view(wide_keys.data(), wide_values.data());
    args.tokens = sequence.tokens(positions, storage);
    args.layer = 1;
    args.per_group = s.per_group;
    args.scale = scale;
    DeviceBuffer<float> splits(split_floats(args.tokens.count, heads, s.channels, s.length));
    args.splits = splits.data();
    args.y = s.bf16 ? Inputs{bits.data(), stride, true} : Inputs{wide.data(), stride, false};
    attend(args, nullptr);
    Floats seen = download(wide);
    if (s.bf16) {
      seen.clear();
      for (const uint16_t b : download(bits)) seen.push_back(arithmetic::from_bf16(b));
      ASSERT_EQ(stride, width);  // no padding to take out
    }
    EXPECT_TRUE(same_bits(seen, expected)) << s.channels << " channels, " << s.length << " positions";
  }
}

TEST_F(AttentionKernel, ManyQueriesGetTheBitsOfTheSimpleKernel) {
  for (const int channels : {64, 128}) {
    for (const int length : {1, 31, 33, 256, 300, 700}) {
      const Shape s{channels, 2, 2, 16, length, true};
      const Sequence sequence(s);
      const int heads = 4;
      const int width = heads * channels;
      const auto keys = upload(narrow(some_floats(sequence.size(), 1)));
      const auto values = upload(narrow(some_floats(sequence.size(), 2)));
      std::vector<int32_t> positions;  // the last 40 of them, two left out at the start
      for (int p = std::max(0, length - 40); p < length; ++p) positions.push_back(p);
      const int tokens = static_cast<int>(positions.size());
      const int first = tokens > 2 ? 2 : 0;
      std::vector<int32_t> bundles;
      for (int t = first; t < tokens; t += kBundle) {
        bundles.insert(bundles.end(), {t, std::min(kBundle, tokens - t)});
      }
      const auto device_bundles = upload(bundles);
      const auto queries = upload(some_floats(static_cast<size_t>(tokens) * static_cast<size_t>(width), 3));
      DeviceBuffer<int32_t> storage;
      AttendArgs args{.first = first, .queries = queries.data()};
      args.cache = sequence.view(keys.data(), values.data());
      args.tokens = sequence.tokens(positions, storage);
      args.tokens.bundles = device_bundles.data();
      args.tokens.bundle_count = static_cast<int>(bundles.size() / 2);
      args.layer = 1;
      args.per_group = 2;
      args.scale = 0.125f;
      ASSERT_TRUE(can_attend_many(args));
      DeviceBuffer<float> splits(split_floats(tokens, heads, channels, length));
      args.splits = splits.data();
      std::vector<std::vector<uint16_t>> results;
      for (const auto version : {attend, attend_many}) {
        const auto y = upload(std::vector<uint16_t>(static_cast<size_t>(tokens) * static_cast<size_t>(width), 0x7fc0u));
        args.y = {y.data(), width, true};
        version(args, nullptr);
        results.push_back(download(y));
        results.back().erase(results.back().begin(), results.back().begin() + first * width);
      }
      EXPECT_TRUE(same_bits(results[1], results[0])) << channels << " channels, " << length << " positions";
      EXPECT_EQ(std::count(results[0].begin(), results[0].end(), 0x7fc0u), 0);
    }
  }
}

TEST_F(AttentionKernel, PreparedHeadsHaveTheBitsOfTheReference) {
  for (const bool bf16 : {false, true}) {
    for (const bool interleaved : {false, true}) {
      const Shape s{20, 2, 3, 7, 30, bf16};
      const Sequence sequence(s);
      const size_t channels = 20;
      const size_t half = 6;
      const std::vector<int32_t> positions{29, 3};
      const size_t heads = 2 * (3 + 2);
      const Floats qkv = some_floats(positions.size() * heads * channels, 4);
      const Floats rotary = some_floats(30 * 2 * half, 5);
      model::ModelConfig config;
      config.norm = model::Norm::kLayerNorm;
      const reference::NormWeights q_norm{some_floats(channels, 6), some_floats(channels, 7)};
      const reference::NormWeights k_norm{some_floats(channels, 8), some_floats(channels, 9)};
      const auto rounded = [&](Floats y) {
        for (float& v : y) v = bf16 ? arithmetic::round_bf16(v) : v;
        return y;
      };
      const auto prepared = [&](const reference::NormWeights& norm, size_t first, size_t t) {
        Floats y = reference::normalise(config, norm, {&qkv[first], channels}, false);
        const float* cosine = &rotary[static_cast<size_t>(positions[t]) * 2 * half];
        reference::rotate(y, {cosine, half}, {cosine + half, half}, interleaved);
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
      const auto out = upload(Floats(queries.size(), NAN));
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
      args.q_norm = {q_gamma.data(), q_beta.data()};
      args.k_norm = {k_gamma.data(), k_beta.data()};
      args.epsilon = static_cast<float>(config.norm_epsilon);
      args.centred = true;
      args.rotary = device_rotary.data();
      args.half = static_cast<int>(half);
      args.interleaved = interleaved;
      prepare_heads(args, nullptr);
      EXPECT_TRUE(same_bits(download(out), queries)) << "bf16 " << bf16 << ", interleaved " << interleaved;
      const auto stored = [&](const DeviceBuffer<float>& memory) {
        Floats all = download(memory);
        if (!bf16) return all;
        std::vector<uint16_t> bits(all.size());
        std::memcpy(bits.data(), all.data(), bits.size() * 2);
        for (size_t i = 0; i < bits.size(); ++i) all[i] = arithmetic::from_bf16(bits[i]);
        return all;
      };
      EXPECT_TRUE(same_bits(stored(stored_keys), keys)) << "bf16 " << bf16;
      EXPECT_TRUE(same_bits(stored(stored_values), values)) << "bf16 " << bf16;
    }
  }
}

}  // namespace
}  // namespace assay::cuda
