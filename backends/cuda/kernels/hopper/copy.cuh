// The copying warpgroup of linear_hopper.cu.
#pragma once

#include "backends/cuda/kernels/hopper/block.cuh"

namespace assay::cuda {

inline constexpr int kTokenThreads = 64;                     // the second and third warp
inline constexpr int kPieces = kRowBytes / 16;               // of a token in a stage: 8
inline constexpr int kRowsAtOnce = kTokenThreads / kPieces;  // tokens that the threads take together
inline constexpr int kRowTurns = kMostTokens / kRowsAtOnce;
static_assert(kRowsAtOnce == 8);  // all rows of a thread are swizzled alike

// The fourth warp: what the copying threads wrote is not seen by wgmma before a fence, which would hold up every
// multiplying warp.
template <class Blocks>
__device__ __forceinline__ void publish_items(const HopperWork& work, HopperShared& shared) {
  Ring ring(shared);
  int entry = 0;
  for (int index = first_item<Blocks>(); index < shared.plan.first[work.entries]; index += item_step<Blocks>()) {
    const int k_tiles = work.parts[item_at<Blocks>(work, shared.plan, index, entry).part].k_tiles;
    for (int k = 0; k < k_tiles; k += kChunkTiles, ring.next()) {
      ring.wait_tokens();
      publish_to_wgmma();
      __syncwarp();
      if (threadIdx.x % 32 == 0) barrier_arrive(ring.full());
    }
  }
}

// One thread: weights, and tokens that lie together, by the copy engine. Weights were there before any kernel, so those
// of the first stages are asked for while the kernel before this one still runs. Blocks of a cluster that need
// the same copy parts of it, each to all of them.
template <class Blocks>
__device__ __forceinline__ void copy_boxes(const HopperWork& work, HopperShared& shared) {
  Ring ring(shared);
  const uint64_t once = evict_first();
  const uint64_t again = evict_normal();
  int entry = 0;
  int ahead = 0;  // stages whose weights were asked for
  const int row = row_rank<Blocks>();
  const int tile = tile_rank<Blocks>();
  // The blocks of the same rows need the same weights, those of the same tile the same tokens.
  constexpr uint32_t kOfRow = Blocks::kTiles == 1 ? 1 : 1 + (1 << Blocks::kRows);
  constexpr uint32_t kOfTile = (1 << Blocks::kRows) - 1;
  const auto same_row = static_cast<uint16_t>(kOfRow << row);
  const auto same_tile = static_cast<uint16_t>(kOfTile << tile * Blocks::kRows);
  static_assert(Blocks::kTiles <= 2);
  for (int index = first_item<Blocks>(); index < shared.plan.first[work.entries]; index += item_step<Blocks>()) {
    const HopperItem item = item_at<Blocks>(work, shared.plan, index, entry);
    const HopperPart& part = work.parts[item.part];
    const int first_tile = item.expert * part.row_tiles + item.row_block * part.item_tiles;
    const int box_rows = part.box_rows;
    const int boxes = box_rows == 0 ? 0 : (item.count + box_rows - 1) / box_rows;
    const auto bytes = static_cast<uint32_t>(part.item_tiles * kRunBytes + boxes * box_rows * kRowBytes);
    const int copied_tiles = part.item_tiles / Blocks::kTiles;
    const auto copy_weights = [&](const Ring& to, int k) {
      const int column = k * kTileBytes / kMapBytes;
      barrier_arrive_expecting(to.full(), bytes);
      if constexpr (Blocks::kTiles == 1) {
        copy_box(to.data(), part.map, column, first_tile, to.full(), item.once ? once : again);
      } else {
        copy_box_to_all(to.data() + static_cast<uint32_t>(tile * copied_tiles * kRunBytes), part.map, column,
                        first_tile + tile * copied_tiles, to.full(), same_row, item.once ? once : again);
      }
    };
    if (index == first_item<Blocks>()) {
      Ring to = ring;
      for (int k = 0; k < part.k_tiles && ahead < kStages; k += kChunkTiles, ++ahead, to.next()) copy_weights(to, k);
      wait_for_kernel_before();
    }
    for (int k = 0; k < part.k_tiles; k += kChunkTiles, ring.next()) {
      if (ahead > 0) {
        --ahead;
      } else {
        ring.wait_empty();
        copy_weights(ring, k);
      }
      for (int b = row; b < boxes; b += Blocks::kRows) {
        const auto to = ring.data() + static_cast<uint32_t>(kWeightBytes + b * box_rows * kRowBytes);
        const int token = item.begin + b * box_rows;
        if constexpr (Blocks::kRows == 1) {
          copy_box(to, part.x_map, k * kTile, token, ring.full(), again);
        } else {
          copy_box_to_all(to, part.x_map, k * kTile, token, ring.full(), same_tile, again);
        }
      }
    }
  }
}

// The second and third warp: tokens, which lie anywhere.
template <class Blocks>
__device__ __forceinline__ void copy_tokens(const HopperWork& work, HopperShared& shared) {
  const int thread = static_cast<int>(threadIdx.x) - 32;
  const int piece = thread % kPieces;
  const int row_in_turn = thread / kPieces;
  const auto to = static_cast<uint32_t>(kWeightBytes + row_in_turn * kRowBytes + (piece ^ row_in_turn) * 16);
  Ring ring(shared);
  wait_for_kernel_before();
  int entry = 0;
  for (int index = first_item<Blocks>(); index < shared.plan.first[work.entries]; index += item_step<Blocks>()) {
    const HopperItem item = item_at<Blocks>(work, shared.plan, index, entry);
    const HopperPart& part = work.parts[item.part];
    const LinearArgs& a = part.linear;
    const uint4* x = static_cast<const uint4*>(a.x.data) + piece;
    uint32_t rows[kRowTurns];  // where they begin, in pieces
#pragma unroll
    for (int i = 0; i < kRowTurns; ++i) {
      const int row = row_in_turn + i * kRowsAtOnce;
      rows[i] = 0;
      if (row >= item.count || part.box_rows > 0) continue;
      rows[i] =
          static_cast<uint32_t>(item_token(part, item, row) / a.x_divisor) * static_cast<uint32_t>(a.x.stride / 8);
    }
    const int count = part.box_rows == 0 ? item.count : 0;
    for (int k = 0; k < part.k_tiles; k += kChunkTiles, ring.next()) {
      ring.wait_empty();
      if (count > 0 && piece < (part.k_tiles - k) * 2) {
#pragma unroll
        for (int i = 0; i < kRowTurns; ++i) {
          if (row_in_turn + i * kRowsAtOnce >= count) break;
          copy_async(ring.data() + to + static_cast<uint32_t>(i * kRowsAtOnce * kRowBytes), x + rows[i] + k * 2);
        }
      }
      barrier_arrive_after_copies(ring.tokens());
    }
  }
}

}  // namespace assay::cuda
