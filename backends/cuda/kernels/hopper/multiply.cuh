// The multiplying warpgroups of linear_hopper.cu.
#pragma once

#include "backends/cuda/kernels/hopper/block.cuh"
#include "backends/cuda/kernels/hopper/wgmma.cuh"

namespace assay::cuda {

inline constexpr int kSegmentChunks = kBlock / (kTile * kChunkTiles);

// Keeps registers that wgmma reads until here.
__device__ __forceinline__ void hold(const uint4 (&w)[kChunkTiles]) {
#pragma unroll
  for (int k = 0; k < kChunkTiles; ++k) asm volatile("" ::"r"(w[k].x), "r"(w[k].y), "r"(w[k].z), "r"(w[k].w));
}

// The results of wgmma are there from here on.
template <int kCount>
__device__ __forceinline__ void add_segment(float (&total)[kCount], float (&acc)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile("" : "+f"(acc[i])::"memory");
    total[i] = total[i] + acc[i];
  }
}

// Where in a stage a lane finds its part of the weights, and its warpgroup the tokens, in bytes.
struct Operands {
  uint32_t weights;
  uint32_t tokens;
};

// total = the dots (linear.h) of the warp's 16 rows.
template <int kTokens, class Blocks>
__device__ __forceinline__ void multiply(Ring& ring, int k_tiles, const Operands& at, float (&total)[kTokens / 2]) {
  constexpr int kSegmentTiles = kSegmentChunks * kChunkTiles;
  float acc[kTokens / 2];
#pragma unroll
  for (int i = 0; i < kTokens / 2; ++i) total[i] = acc[i] = 0;
  int left = k_tiles;
  for (; left >= kSegmentTiles; left -= kSegmentTiles) {
    uint4 w[2][kChunkTiles];
#pragma unroll
    for (int c = 0; c < kSegmentChunks; ++c) {
      ring.wait_full();
#pragma unroll
      for (int k = 0; k < kChunkTiles; ++k) w[c % 2][k] = load_shared(ring.data() + at.weights + k * kTileBytes);
      const uint64_t tokens = descriptor(ring.data() + at.tokens);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kChunkTiles; ++k) wgmma(acc, w[c % 2][k], tokens + static_cast<uint64_t>(2 * k), c + k > 0);
      wgmma_commit();
      if (c > 0) {
        wgmma_wait<1>();
        hold(w[(c + 1) % 2]);
        ring.release<Blocks>(1);
      }
      ring.next();
    }
    wgmma_wait<0>();
    hold(w[(kSegmentChunks - 1) % 2]);
    ring.release<Blocks>(1);
    add_segment(total, acc);
  }
  if (left == 0) return;
  for (int k = 0; k < left; ++k) {  // the last segment, shorter
    const int step = k % kChunkTiles;
    if (step == 0) {
      ring.wait_full();
    }
    const uint4 w = load_shared(ring.data() + at.weights + static_cast<uint32_t>(step * kTileBytes));
    wgmma_fence();
    wgmma(acc, w, descriptor(ring.data() + at.tokens) + static_cast<uint64_t>(2 * step), k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    if (step < kChunkTiles - 1 && k < left - 1) continue;
    ring.next();
    ring.release<Blocks>(1);
  }
  add_segment(total, acc);
}

// One item: its dots, then its results to where the writing warpgroup finds them. kNarrow: both warpgroups take the
// same 64 rows, the second one the tokens behind the first kTokens.
template <int kTokens, bool kNarrow, class Blocks>
__device__ __forceinline__ void take_item(HopperShared& shared, int k_tiles, Ring& ring, uint32_t& phase) {
  const int thread = static_cast<int>(threadIdx.x) - 2 * kWarpgroup;
  const int lane = thread % 32;
  const int row_tile = kNarrow ? thread / 32 % kNarrowRowTiles : thread / 32;
  const int token = kNarrow ? thread / kWarpgroup * kTokens : 0;
  float total[kTokens / 2];
  multiply<kTokens, Blocks>(ring, k_tiles,
                            {static_cast<uint32_t>(row_tile * kRunBytes + lane * 16),
                             static_cast<uint32_t>(kWeightBytes + token * kRowBytes)},
                            total);
  barrier_wait(shared_address(&shared.results_empty), phase ^ 1u);
  phase ^= 1u;
  const int row = row_tile * kTile + lane / 4;
  float* const low = shared.results + staged(token + lane % 4 * 2, row);  // tokens 8 further: the same place in a row
  float* const high = shared.results + staged(token + lane % 4 * 2, row + 8);
#pragma unroll
  for (int i = 0; i < kTokens / 2; i += 4) {
    const int at = i * 2 * kItemRows;
    low[at] = total[i];
    low[at + kItemRows] = total[i + 1];
    high[at] = total[i + 2];
    high[at + kItemRows] = total[i + 3];
  }
  __syncwarp();
  if (lane == 0) barrier_arrive(shared_address(&shared.results_full));
}

template <class Blocks>
__device__ __forceinline__ void take_wide(HopperShared& shared, int k_tiles, int tokens, Ring& ring, uint32_t& phase) {
  switch ((tokens + 15) / 16) {
    case 0:
    case 1:
      if (tokens <= 8) return take_item<8, false, Blocks>(shared, k_tiles, ring, phase);
      return take_item<16, false, Blocks>(shared, k_tiles, ring, phase);
    case 2:
      return take_item<32, false, Blocks>(shared, k_tiles, ring, phase);
    case 3:
      return take_item<48, false, Blocks>(shared, k_tiles, ring, phase);
    case 4:
      return take_item<64, false, Blocks>(shared, k_tiles, ring, phase);
    case 5:
      return take_item<80, false, Blocks>(shared, k_tiles, ring, phase);
    case 6:
      return take_item<96, false, Blocks>(shared, k_tiles, ring, phase);
    case 7:
      return take_item<112, false, Blocks>(shared, k_tiles, ring, phase);
    default:
      return take_item<128, false, Blocks>(shared, k_tiles, ring, phase);
  }
}

// tokens: of the larger half.
__device__ __forceinline__ void take_narrow(HopperShared& shared, int k_tiles, int tokens, Ring& ring,
                                            uint32_t& phase) {
  if (tokens <= 8) return take_item<8, true, Cluster<1, 1>>(shared, k_tiles, ring, phase);
  if (tokens <= 16) return take_item<16, true, Cluster<1, 1>>(shared, k_tiles, ring, phase);
  if (tokens <= 32) return take_item<32, true, Cluster<1, 1>>(shared, k_tiles, ring, phase);
  take_item<64, true, Cluster<1, 1>>(shared, k_tiles, ring, phase);
}

template <class Blocks>
__device__ __forceinline__ void multiply_items(const HopperWork& work, HopperShared& shared) {
  Ring ring(shared);
  uint32_t phase = 0;
  int entry = 0;
  for (int index = first_item<Blocks>(); index < shared.plan.first[work.entries]; index += item_step<Blocks>()) {
    const HopperItem item = item_at<Blocks>(work, shared.plan, index, entry);
    const HopperPart& part = work.parts[item.part];
    if (Blocks::kBlocks == 1 && part.item_tiles == kNarrowRowTiles) {
      take_narrow(shared, part.k_tiles, (item.count + 1) / 2, ring, phase);
    } else {
      take_wide<Blocks>(shared, part.k_tiles, item.count, ring, phase);
    }
  }
}

}  // namespace assay::cuda
