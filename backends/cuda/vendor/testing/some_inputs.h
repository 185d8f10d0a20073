// Support of tests and benchmarks: dense matrices and a sequence in a paged cache, of arbitrary numbers, on the device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/reference/arithmetic/formats.h"

namespace assay::cuda::vendor {

// Numbers below 1 of both signs and several magnitudes; the same for the same seed.
inline std::vector<float> some_numbers(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    const auto fraction = static_cast<float>(static_cast<int32_t>(seed >> 8) - (1 << 23));
    value = fraction * (seed >> 30 == 0 ? 0x1p-26f : 0x1p-23f);
  }
  return values;
}

// `count` such numbers as bf16: a pattern of some thousands, repeated.
inline DeviceBuffer<uint16_t> some_bf16(size_t count, uint32_t seed) {
  constexpr size_t kPattern = 40009;  // prime: rows differ
  const std::vector<float> numbers = some_numbers(std::min(count, kPattern), seed);
  std::vector<uint16_t> bits;
  bits.reserve(numbers.size());
  for (const float v : numbers) bits.push_back(arithmetic::to_bf16(v));
  DeviceBuffer<uint16_t> buffer(count);
  size_t done = bits.size();
  check(cudaMemcpy(buffer.data(), bits.data(), done * sizeof(uint16_t), cudaMemcpyHostToDevice), "cudaMemcpy");
  while (done < count) {
    const size_t more = std::min(done, count - done);
    check(cudaMemcpy(buffer.data() + done, buffer.data(), more * sizeof(uint16_t), cudaMemcpyDeviceToDevice),
          "cudaMemcpy");
    done += more;
  }
  return buffer;
}

// A tiled matrix whose columns are a multiple of 16.
struct SomeMatrix {
  SomeMatrix(int rows, int cols, bool gated, uint32_t seed)
      : data(some_bf16(static_cast<size_t>(rows) * static_cast<size_t>(cols), seed)),
        matrix{data.data(), rows, cols, Number::kBfloat16, true, gated} {}
  DeviceBuffer<uint16_t> data;
  Matrix matrix;
};

// One sequence of `length` positions in layer 1 of 2, its blocks of 16 tokens in descending order. Tokens `start` to
// the end are in the pass, in bundles, queries and keys given.
class SomeSequence {
 public:
  SomeSequence(const CacheView& shape, int per_group, int start, int length) : start_(start), length_(length) {
    constexpr int kBlock = 16;
    const int blocks = (length + kBlock - 1) / kBlock;
    const int count = length - start;
    const int heads = shape.groups * per_group;
    const int width = heads * shape.channels;
    const size_t vectors = size_t{2} * static_cast<size_t>(blocks) * static_cast<size_t>(shape.groups) * kBlock;
    keys_ = some_bf16(vectors * static_cast<size_t>(shape.channels), 1);
    values_ = some_bf16(vectors * static_cast<size_t>(shape.channels), 2);
    std::vector<uint16_t> queries;
    for (const float q : some_numbers(static_cast<size_t>(count) * static_cast<size_t>(width), 3)) {
      queries.push_back(arithmetic::to_bf16(3 * q));
    }
    queries_ = upload(queries);
    std::vector<int32_t> ints;
    ints.reserve(size_t{3} * static_cast<size_t>(count) + static_cast<size_t>(blocks) + 2);
    for (int t = 0; t < count; ++t) ints.push_back(start + t);
    ints.insert(ints.end(), static_cast<size_t>(count), 0);
    int bundles = 0;
    for (int t = 0; t < count; t += kBundle, ++bundles) ints.insert(ints.end(), {t, std::min(kBundle, count - t)});
    for (int b = 0; b < blocks; ++b) ints.push_back(blocks - 1 - b);
    ints_ = upload(ints);
    y_ = DeviceBuffer<uint16_t>(static_cast<size_t>(count) * static_cast<size_t>(width));
    splits_ = DeviceBuffer<float>(split_floats(count, heads, shape.channels, length));

    args_.queries = queries_.data();
    args_.cache = {keys_.data(), values_.data(), true, shape.groups, shape.channels, kBlock, blocks};
    args_.tokens.count = count;
    args_.tokens.position = ints_.data();
    args_.tokens.table = ints_.data() + count;
    args_.tokens.bundles = ints_.data() + 2 * count;
    args_.tokens.bundle_count = bundles;
    args_.tokens.blocks = ints_.data() + 2 * count + 2 * bundles;
    args_.tokens.longest = length;
    args_.layer = 1;
    args_.per_group = per_group;
    args_.scale = 1.0f / std::sqrt(static_cast<float>(shape.channels));
    args_.splits = splits_.data();
    args_.y = {y_.data(), width, true};
  }

  const AttendArgs& args() const { return args_; }
  int count() const { return length_ - start_; }
  int start() const { return start_; }
  // args().y, by token.
  std::vector<uint16_t> result() const { return download(y_); }

 private:
  int start_;
  int length_;
  DeviceBuffer<uint16_t> keys_, values_, queries_, y_;
  DeviceBuffer<float> splits_;
  DeviceBuffer<int32_t> ints_;
  AttendArgs args_;
};

}  // namespace assay::cuda::vendor
