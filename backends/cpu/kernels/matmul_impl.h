// Matrix times vectors in register tiles of R rows x T tokens. Each result keeps its own sixteen lanes, so the tile's
// shape never shows in the bits (arithmetic/dot.h).
#pragma once

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/loaders.h"

namespace assay::cpu {

inline constexpr size_t kDotBlock = kPackColumns;
inline constexpr size_t kBlocksAhead = 4;  // what the first tokens prefetch, in the order in which it will be read

template <class V, class W, int R, int T>
struct Tile {
  using F = typename V::F;
  using Stored = typename W::Stored;

  // Sixteen columns at k: `some` of them, the rest count as zero.
  template <bool kWhole>
  [[gnu::always_inline]] static inline void step(const Stored* w, size_t cols, const float* const* x, size_t k,
                                                 size_t some, F (&lanes)[R][T]) {
    F in[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) in[t] = kWhole ? V::load(x[t] + k) : V::load_some(x[t] + k, some);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Stored* p = w + static_cast<size_t>(r) * cols + k;
      const F weight = kWhole ? W::load(p) : W::load_some(p, some);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) lanes[r][t] = V::fma(weight, in[t], lanes[r][t]);
    }
  }

  static constexpr size_t kLine = 64 / sizeof(Stored);  // columns of a cache line

  // The columns that are read kBlocksAhead blocks after `block`: of these rows, else of the next R.
  [[gnu::always_inline]] static inline const Stored* block_ahead(const Stored* w, size_t cols, size_t block) {
    const size_t next = block + kBlocksAhead * kDotBlock;
    const size_t padded = (cols + kDotBlock - 1) / kDotBlock * kDotBlock;
    return next < padded ? w + next : w + static_cast<size_t>(R) * cols + (next - padded);
  }

  // first: these tokens are the first to read the rows, so they fetch what comes next.
  static void run(const Stored* w, size_t cols, const float* const* x, float* const* y, size_t place, bool first) {
    F totals[R][T];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) totals[r][t] = V::set(0.0f);
    }
    for (size_t block = 0; block < cols; block += kDotBlock) {
      const size_t end = block + kDotBlock < cols ? block + kDotBlock : cols;
      F lanes[R][T];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) lanes[r][t] = V::set(0.0f);
      }
      size_t k = block;
      if (first) {
        const Stored* ahead = block_ahead(w, cols, block);
        for (; k + kLine <= end; k += kLine) {
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) V::prefetch(ahead + static_cast<size_t>(r) * cols + (k - block));
          step<true>(w, cols, x, k, 16, lanes);
          if (kLine > 16) step<true>(w, cols, x, k + 16, 16, lanes);
        }
      }
      for (; k + 16 <= end; k += 16) step<true>(w, cols, x, k, 16, lanes);
      if (k < end) step<false>(w, cols, x, k, end - k, lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) totals[r][t] = V::add(totals[r][t], lanes[r][t]);
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) y[t][place + static_cast<size_t>(r)] = V::tree(totals[r][t]);
    }
  }
};

inline constexpr size_t kBytesAhead = 4096;  // what a row's reading prefetches, of these rows in memory's order

// N whole blocks of one row side by side, added to the total in their order.
template <class V, class W, int N>
[[gnu::always_inline]] inline typename V::F add_blocks(const typename W::Stored* w, const float* x,
                                                       typename V::F total) {
  typename V::F lanes[N];
#pragma GCC unroll 8
  for (int b = 0; b < N; ++b) lanes[b] = V::set(0.0f);
  constexpr size_t kLine = 64 / sizeof(typename W::Stored);  // columns of a cache line
  for (size_t k = 0; k < kDotBlock; k += kLine) {
#pragma GCC unroll 8
    for (int b = 0; b < N; ++b) {
      const size_t at = static_cast<size_t>(b) * kDotBlock + k;
      V::prefetch(w + at + kBytesAhead / sizeof(typename W::Stored));
#pragma GCC unroll 8
      for (size_t i = 0; i < kLine; i += 16) {
        lanes[b] = V::fma(W::load(w + at + i), V::load(x + at + i), lanes[b]);
      }
    }
  }
#pragma GCC unroll 8
  for (int b = 0; b < N; ++b) total = V::add(total, lanes[b]);
  return total;
}

// All rows for one token. The memory is read from front to back, which it does fastest; blocks of one row side by side
// hide the latency of the multiply-adds.
template <class V, class W>
void multiply_one(const MatmulArgs& a) {
  constexpr size_t kTogether = 4;
  const float* x = a.x[0];
  const auto* w = static_cast<const typename W::Stored*>(a.weight) + a.begin * a.cols;
  for (size_t row = a.begin; row < a.end; ++row, w += a.cols) {
    typename V::F total = V::set(0.0f);
    size_t k = 0;
    for (; k + kTogether * kDotBlock <= a.cols; k += kTogether * kDotBlock) {
      total = add_blocks<V, W, kTogether>(w + k, x + k, total);
    }
    const size_t left = (a.cols - k) / kDotBlock;
    if (left == 3) total = add_blocks<V, W, 3>(w + k, x + k, total);
    if (left == 2) total = add_blocks<V, W, 2>(w + k, x + k, total);
    if (left == 1) total = add_blocks<V, W, 1>(w + k, x + k, total);
    k += left * kDotBlock;
    if (k < a.cols) {
      typename V::F lanes = V::set(0.0f);
      for (; k + 16 <= a.cols; k += 16) lanes = V::fma(W::load(w + k), V::load(x + k), lanes);
      if (k < a.cols) lanes = V::fma(W::load_some(w + k, a.cols - k), V::load_some(x + k, a.cols - k), lanes);
      total = V::add(total, lanes);
    }
    a.y[0][row - a.y_offset] = V::tree(total);
  }
}

// All rows for few tokens, R rows at a time, the rest one by one; packed_impl.h is for many.
template <class V, class W>
void matmul(const MatmulArgs& a) {
  if (a.tokens == 1) return multiply_one<V, W>(a);
  using Stored = typename W::Stored;
  const auto* weight = static_cast<const Stored*>(a.weight);
  const size_t tiled = a.tokens / V::kTokens * V::kTokens;
  size_t row = a.begin;
  while (row < a.end) {
    const Stored* w = weight + row * a.cols;
    const size_t place = row - a.y_offset;
    const size_t height = a.end - row >= V::kRowsAlone ? V::kRowsAlone : 1;
    for (size_t t = 0; t < tiled; t += V::kTokens) {
      size_t r = 0;
      for (; r + V::kRows <= height; r += V::kRows) {
        Tile<V, W, V::kRows, V::kTokens>::run(w + r * a.cols, a.cols, a.x + t, a.y + t, place + r, t == 0);
      }
      for (; r < height; ++r) {
        Tile<V, W, 1, V::kTokens>::run(w + r * a.cols, a.cols, a.x + t, a.y + t, place + r, t == 0);
      }
    }
    for (size_t t = tiled; t < a.tokens; ++t) {
      if (height == V::kRowsAlone) {
        Tile<V, W, V::kRowsAlone, 1>::run(w, a.cols, a.x + t, a.y + t, place, t == 0);
      } else {
        Tile<V, W, 1, 1>::run(w, a.cols, a.x + t, a.y + t, place, t == 0);
      }
    }
    row += height;
  }
}

}  // namespace assay::cpu
