// Runs operators on a pool: small ones on the calling thread, the others cut by output elements.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backends/cpu/cpu_weights.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/pool/thread_pool.h"

namespace assay::cpu {

struct Range {
  size_t begin;
  size_t end;
};

// Part `part` of `parts` of [0, count), cut at multiples of `grain`.
inline Range part_of(size_t count, size_t grain, size_t part, size_t parts) {
  const size_t units = (count + grain - 1) / grain;
  return {std::min(count, units * part / parts * grain), std::min(count, units * (part + 1) / parts * grain)};
}

// What a linear layer reads.
struct Inputs {
  const float* const* x = nullptr;  // (tokens) of (cols)
  size_t tokens = 0;
  const float* packed = nullptr;  // x packed, or null
};

class Executor {
 public:
  // Operators of fewer than `parallel_from` multiply-adds stay on the calling thread.
  Executor(const Kernels& kernels, ThreadPool& pool, size_t parallel_from)
      : kernels_(kernels), pool_(pool), parallel_from_(parallel_from) {}

  const Kernels& kernels() const { return kernels_; }
  size_t threads() const { return static_cast<size_t>(pool_.threads()); }
  // Several parts a thread, so that a thread that was held up keeps the others waiting for less.
  size_t most_parts() const { return threads() == 1 ? 1 : 4 * threads(); }

  // body(part, parts), once for each part; one part when there is little to do. work: multiply-adds, roughly.
  template <class Body>
  void parts(size_t work, const Body& body) {
    if (work < parallel_from_ || pool_.threads() == 1) {
      body(size_t{0}, size_t{1});
    } else {
      const size_t count = most_parts();
      pool_.run(count, [&](size_t part) { body(part, count); });
    }
  }

  // body(index) for every index below count; cost: multiply-adds of one.
  template <class Body>
  void each(size_t count, size_t cost, const Body& body) {
    parts(count * cost, [&](size_t part, size_t parts) {
      const Range range = part_of(count, 1, part, parts);
      for (size_t i = range.begin; i < range.end; ++i) body(i);
    });
  }

  // Floats that pack() writes for these inputs, 0 where they are few and stay as they are.
  static size_t packed_floats(size_t tokens, size_t cols) { return tokens < kPackFrom ? 0 : packed_size(tokens, cols); }

  // Packs x (tokens of cols) to `packed`, which multiply() then takes instead.
  void pack(const float* const* x, size_t tokens, size_t cols, float* packed) {
    const size_t tiles = (tokens + kPackTokens - 1) / kPackTokens;
    parts(tokens * cols * kPackCost, [&](size_t part, size_t parts) {
      const Range range = part_of(tiles, 1, part, parts);
      kernels_.pack({x, tokens, cols, range.begin, range.end, packed});
    });
  }

  // y[t] = weight x[t] + bias for all rows; after(begin, end) then runs on the same thread for the rows done.
  template <class After>
  void linear(const Linear& linear, const float* const* x, float* const* y, size_t tokens, const After& after) {
    const Matrix& w = linear.weight;
    packed_.resize(std::max(packed_.size(), packed_floats(tokens, w.cols)));
    const float* packed = tokens < kPackFrom ? nullptr : packed_.data();
    if (packed != nullptr) pack(x, tokens, w.cols, packed_.data());
    parts(w.rows * w.cols * tokens, [&](size_t part, size_t parts) {
      const Range range = part_of(w.rows, kGrain, part, parts);
      if (range.begin == range.end) return;
      multiply(w, range, {x, tokens, packed}, y, 0);
      for (size_t t = 0; t < tokens && linear.bias != nullptr; ++t) {
        kernels_.add(linear.bias + range.begin, y[t] + range.begin, range.end - range.begin);
      }
      after(range.begin, range.end);
    });
  }

  // One thread's share: y[t][r - offset] = dot of row r and x[t].
  void multiply(const Matrix& w, Range rows, const Inputs& in, float* const* y, size_t offset) const {
    kernels_.matmul[static_cast<size_t>(w.number)](
        {w.data, w.cols, rows.begin, rows.end, in.x, y, offset, in.tokens, in.packed});
  }

  static constexpr size_t kGrain = 8;  // rows

 private:
  static constexpr size_t kPackCost = 4;  // multiply-adds that take as long as packing one float
  const Kernels& kernels_;
  ThreadPool& pool_;
  size_t parallel_from_;
  Floats packed_;  // inputs of the layer at work
};

}  // namespace assay::cpu
