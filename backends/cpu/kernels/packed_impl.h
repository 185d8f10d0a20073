// Matrix times many vectors: inputs packed once, a panel of weights widened once a block of columns and used for all
// tokens. The lanes of unfinished dots wait in memory between blocks, so every result keeps the order of
// arithmetic/dot.h.
#pragma once

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/loaders.h"

namespace assay::cpu {

inline constexpr size_t kPanelRows = 16;     // rows of weights in the first-level cache: 16 KiB once widened
inline constexpr size_t kPanelTokens = 256;  // tokens for which lanes wait: 256 KiB of the second-level cache

// Columns [begin, begin + kDotBlock) of one row as floats, up to a multiple of sixteen filled with zeros.
template <class V, class W>
[[gnu::always_inline]] inline void copy_block(const typename W::Stored* row, size_t cols, float* to) {
  const size_t n = cols < kDotBlock ? cols : kDotBlock;
  size_t k = 0;
  for (; k + 16 <= n; k += 16) V::store(to + k, W::load(row + k));
  if (k < n) V::store(to + k, W::load_some(row + k, n - k));
}

template <class V>
void pack(const PackArgs& a) {
  const size_t blocks = (a.cols + kDotBlock - 1) / kDotBlock;
  for (size_t tile = a.begin; tile < a.end; ++tile) {
    for (size_t block = 0; block < blocks; ++block) {
      float* to = a.packed + (tile * blocks + block) * kPackTokens * kDotBlock;
      for (size_t t = 0; t < kPackTokens; ++t, to += kDotBlock) {
        const size_t token = tile * kPackTokens + t;
        if (token < a.tokens) {
          copy_block<V, LoadFloat32<V>>(a.x[token] + block * kDotBlock, a.cols - block * kDotBlock, to);
        } else {
          for (size_t k = 0; k < kDotBlock; k += 16) V::store(to + k, V::set(0.0f));
        }
      }
    }
  }
}

// One block of R rows x T tokens: totals[t][r] += its lanes. Fetches what comes next: a row of weights, inputs of a
// token.
template <class V, class W, int R, int T>
[[gnu::always_inline]] inline void add_block(const float* w, const float* x, size_t cols, float* totals,
                                             const typename W::Stored* next_row, const float* next_token) {
  using F = typename V::F;
  F lanes[R][T];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) lanes[r][t] = V::set(0.0f);
  }
  for (size_t k = 0; k < cols; k += 16) {
    F in[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) in[t] = V::load(x + static_cast<size_t>(t) * kDotBlock + k);
    V::prefetch(next_row + k);
    V::prefetch(next_token + k);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F weight = V::load(w + static_cast<size_t>(r) * kDotBlock + k);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) lanes[r][t] = V::fma(weight, in[t], lanes[r][t]);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float* total = totals + (static_cast<size_t>(t) * kPanelRows + static_cast<size_t>(r)) * 16;
      V::store(total, V::add(V::load(total), lanes[r][t]));
    }
  }
}

// Rows [row, row + rows) for tokens [first, last), at most kPanelRows x kPanelTokens of them; first is at a tile.
template <class V, class W>
void multiply_panel(const MatmulArgs& a, size_t row, size_t rows, size_t first, size_t last) {
  using Stored = typename W::Stored;
  constexpr size_t kR = V::kRows;
  constexpr size_t kT = V::kTokens;
  static_assert(kPanelRows == 16 && kPackTokens % kT == 0 && kPanelRows % kR == 0 && kPanelTokens % kPackTokens == 0);
  alignas(64) float panel[kPanelRows * kDotBlock];
  alignas(64) float totals[kPanelTokens * kPanelRows * 16];
  const size_t tokens = last - first;
  const size_t blocks = (a.cols + kDotBlock - 1) / kDotBlock;
  const Stored* weight = static_cast<const Stored*>(a.weight) + row * a.cols;
  const size_t padded_tokens = (tokens + kT - 1) / kT * kT;
  for (size_t i = 0; i < padded_tokens * kPanelRows * 16; i += 16) V::store(totals + i, V::set(0.0f));
  for (size_t i = rows * kDotBlock; i < kPanelRows * kDotBlock; i += 16) V::store(panel + i, V::set(0.0f));
  for (size_t block = 0; block < blocks; ++block) {
    const size_t begin = block * kDotBlock;
    const size_t left = a.cols - begin < kDotBlock ? a.cols - begin : kDotBlock;
    const size_t cols = (left + 15) / 16 * 16;  // the packed ones are zero behind `left`
    for (size_t r = 0; r < rows; ++r) {
      copy_block<V, W>(weight + r * a.cols + begin, a.cols - begin, panel + r * kDotBlock);
    }
    const Stored* next = block + 1 < blocks ? weight + begin + kDotBlock : weight + rows * a.cols;
    size_t ahead = 0;
    for (size_t t = 0; t < tokens; t += kT) {
      const size_t tile = (first + t) / kPackTokens;
      const float* x = a.packed + ((tile * blocks + block) * kPackTokens + t % kPackTokens) * kDotBlock;
      const float* next_tile = x + blocks * kPackTokens * kDotBlock;
      for (size_t r = 0; r < rows; r += kR) {
        add_block<V, W, kR, kT>(panel + r * kDotBlock, x, cols, totals + (t * kPanelRows + r) * 16,
                                next + ahead * a.cols, next_tile + r / kR % kPackTokens * kDotBlock);
        if (ahead + 1 < rows) ++ahead;
      }
    }
  }
  for (size_t t = 0; t < tokens; ++t) {
    float* y = a.y[first + t] + (row - a.y_offset);
    const float* lanes = totals + t * kPanelRows * 16;
    if (rows == kPanelRows) {
      V::trees(lanes, y);
    } else {
      for (size_t r = 0; r < rows; ++r) y[r] = V::tree(V::load(lanes + r * 16));
    }
  }
}

template <class V, class W>
void matmul_packed(const MatmulArgs& a) {
  for (size_t first = 0; first < a.tokens; first += kPanelTokens) {
    const size_t last = first + kPanelTokens < a.tokens ? first + kPanelTokens : a.tokens;
    for (size_t row = a.begin; row < a.end; row += kPanelRows) {
      multiply_panel<V, W>(a, row, a.end - row < kPanelRows ? a.end - row : kPanelRows, first, last);
    }
  }
}

}  // namespace assay::cpu
