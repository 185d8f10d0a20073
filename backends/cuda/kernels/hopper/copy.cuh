// The copying warpgroup of linear_hopper.cu.
#pragma once

#include "backends/cuda/kernels/hopper/block.cuh"

namespace assay::cuda {

inline constexpr int kCopyThreads = 96;                     // the last warp publishes what they copied
inline constexpr int kPieces = kRowBytes / 16;              // of a token in a stage: 8
inline constexpr int kRowsAtOnce = kCopyThreads / kPieces;  // tokens that the threads take together
inline constexpr int kRowTurns = (kMostTokens + kRowsAtOnce - 1) / kRowsAtOnce;

// The warp behind the copying threads: what they wrote is not seen by wgmma before a fence, which would hold up every
// multiplying warp.
__device__ __forceinline__ void publish_items(const HopperWork& work, HopperShared& shared) {
  Ring ring(shared);
  int entry = 0;
  for (int index = static_cast<int>(blockIdx.x); index < shared.first[work.entries];
       index += static_cast<int>(gridDim.x)) {
    const int k_tiles = work.parts[item_at(work, shared.first, index, entry).part].k_tiles;
    for (int k = 0; k < k_tiles; k += kChunkTiles, ring.next()) {
      ring.wait_tokens();
      publish_to_wgmma();
      __syncwarp();
      if (threadIdx.x % 32 == 0) barrier_arrive(ring.full());
    }
  }
}

// Weights by the copy engine, tokens (which lie anywhere) by its threads.
__device__ __forceinline__ void copy_items(const HopperWork& work, HopperShared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int* const first = shared.first;
  Ring ring(shared);
  const int piece = thread % kPieces;
  const int row_in_turn = thread / kPieces;
  const uint64_t once = evict_first();
  const uint64_t again = evict_normal();
  static_assert(kRowsAtOnce * 2 % 8 == 0);  // of two turns: rows swizzled alike
  const uint32_t swizzled[2] = {static_cast<uint32_t>(piece ^ row_in_turn % 8) * 16,
                                static_cast<uint32_t>(piece ^ (row_in_turn + kRowsAtOnce) % 8) * 16};
  int entry = 0;
  for (int index = static_cast<int>(blockIdx.x); index < first[work.entries]; index += static_cast<int>(gridDim.x)) {
    const HopperItem item = item_at(work, first, index, entry);
    const HopperPart& part = work.parts[item.part];
    const LinearArgs& a = part.linear;
    const int k_tiles = part.k_tiles;
    const int row_tiles = min(kItemRowTiles, (a.weight.rows + kTile - 1) / kTile - item.row_block * kItemRowTiles);
    const auto* weights = static_cast<const uint8_t*>(a.weight.data) + item.expert * a.weight.bytes() +
                          int64_t{item.row_block * kItemRowTiles + thread} * k_tiles * kTileBytes;
    const uint8_t* rows[kRowTurns];
#pragma unroll
    for (int i = 0; i < kRowTurns; ++i) {
      const int row = row_in_turn + i * kRowsAtOnce;
      rows[i] = nullptr;
      if (row >= item.count) continue;
      const int token = item_token(part, item, row);
      rows[i] = static_cast<const uint8_t*>(a.x.data) + (int64_t{token / a.x_divisor} * a.x.stride + piece * 8) * 2;
    }
    const uint32_t to = static_cast<uint32_t>(kWeightBytes + row_in_turn * kRowBytes);
    for (int k = 0; k < k_tiles; k += kChunkTiles, ring.next()) {
      const int tiles = min(kChunkTiles, k_tiles - k);
      ring.wait_empty();
      if (thread < 32) {
        if (thread == 0) barrier_arrive_expecting(ring.full(), static_cast<uint32_t>(row_tiles * tiles * kTileBytes));
        __syncwarp();
        if (thread < row_tiles) {
          copy_bulk(ring.data() + static_cast<uint32_t>(thread * kRunBytes), weights + int64_t{k} * kTileBytes,
                    static_cast<uint32_t>(tiles * kTileBytes), ring.full(), item.once ? once : again);
        }
      }
      if (piece < tiles * 2) {
#pragma unroll
        for (int i = 0; i < kRowTurns; ++i) {
          if (rows[i] == nullptr) break;
          copy_async(ring.data() + to + swizzled[i % 2] + static_cast<uint32_t>(i * kRowsAtOnce * kRowBytes),
                     rows[i] + k * kTile * 2);
        }
      }
      barrier_arrive_after_copies(ring.tokens());
    }
  }
}

}  // namespace assay::cuda
