// What the kernels' arguments are made of. All pointers are of device memory unless said otherwise.
//
// Kernels: launched on the given stream, asynchronous; inputs must stay as they are until they ran. A refused launch
// throws CudaError. Determinism level of all: L3 (a result depends on its own inputs alone, whatever else is computed
// beside it).
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

namespace assay::cuda {

enum class Number : uint8_t { kFloat32, kBfloat16, kFloat16 };
constexpr size_t number_size(Number number) { return number == Number::kFloat32 ? 4 : 2; }

inline constexpr int kTile = 16;       // rows and columns of one tile of a packed matrix
inline constexpr int kTileTokens = 8;  // tokens that a linear kernel takes together

constexpr int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

// A weight matrix (rows, cols): row-major, or `tiled` (bf16 only): tiles of 16 x 16, (row tiles, column tiles), padded
// with zeros. A tile is 32 lanes of 8 numbers, each lane's being its part of the A operand of mma.m16n8k16: with
// g = lane / 4 and c = lane % 4, rows g, g, g+8, g+8, g, g, g+8, g+8 and columns 2c, 2c+1, 2c, 2c+1, 2c+8 .. 2c+9
// twice. So a warp reads 16 rows as one run of memory, 16 bytes a lane and step.
struct Matrix {
  const void* data = nullptr;  // null: the model has none
  int rows = 0;
  int cols = 0;
  Number number = Number::kFloat32;
  bool tiled = false;
  bool gated =
      false;  // tiled fc1 of a gated MLP, rows / 2 a multiple of 8: tile j is gate rows 8j .. 8j+7, then up rows

  // Bytes from one matrix to the next where several of the same shape follow one another (experts).
  constexpr int64_t bytes() const {
    if (!tiled) return int64_t{rows} * cols * static_cast<int64_t>(number_size(number));
    return int64_t{round_up(rows, kTile)} * round_up(cols, kTile) * 2;
  }
};

// Which row of the matrix is row `r` of row tile `tile`; rows or more: padding.
constexpr int tiled_row(const Matrix& m, int tile, int r) {
  return m.gated ? tile * 8 + r % 8 + r / 8 * (m.rows / 2) : tile * kTile + r;
}

// Index of element (row, col) of a tiled matrix that is not `gated`, in elements.
constexpr int64_t tiled_index(int row, int col, int cols) {
  const int64_t tile = int64_t{row / kTile} * ((cols + kTile - 1) / kTile) + col / kTile;
  const int r = row % kTile;
  const int c = col % kTile;
  const int lane = r % 8 * 4 + c % 8 / 2;
  return tile * (kTile * kTile) + lane * 8 + c / 8 * 4 + r / 8 * 2 + c % 2;
}

// Vectors that a linear layer reads, one a token: fp32, or bf16 in bf16 arithmetic. `stride` numbers apart; bf16: a
// multiple of 16, with zeros from the width to the next multiple of 16 (who writes the rows writes the zeros).
struct Inputs {
  void* data = nullptr;
  int stride = 0;
  bool bf16 = false;
};

// Tokens by expert, for kernels that take a tile of up to kTileTokens tokens of one expert at a time. A slot is
// token * topk + k. Made by group_slots (routing.h).
struct Groups {
  const int32_t* order = nullptr;        // (slots) ascending expert, ascending slot within
  const int32_t* tile_expert = nullptr;  // (most_tiles)
  const int32_t* tile_begin = nullptr;   // (most_tiles) first index within order
  const int32_t* tile_count = nullptr;   // (most_tiles) 1 .. kTileTokens
  const int32_t* tiles = nullptr;        // (1) how many there are
  const int32_t* begin = nullptr;        // (experts + 1) where an expert's slots begin within order
  int most_tiles = 0;                    // upper bound, known to the host
  int experts = 0;
};

}  // namespace assay::cuda
