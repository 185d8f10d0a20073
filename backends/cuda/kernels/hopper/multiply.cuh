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

// total = the dots (linear.h) of the warp's 16 rows; lane_weights: where in a stage the lane's part of them is.
template <int kTokens>
__device__ __forceinline__ void multiply(Ring& ring, int k_tiles, uint32_t lane_weights, float (&total)[kTokens / 2]) {
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
      for (int k = 0; k < kChunkTiles; ++k) w[c % 2][k] = load_shared(ring.data() + lane_weights + k * kTileBytes);
      const uint64_t tokens = descriptor(ring.data() + kWeightBytes);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kChunkTiles; ++k) wgmma(acc, w[c % 2][k], tokens + static_cast<uint64_t>(2 * k), c + k > 0);
      wgmma_commit();
      if (c > 0) {
        wgmma_wait<1>();
        hold(w[(c + 1) % 2]);
        ring.release(1);
      }
      ring.next();
    }
    wgmma_wait<0>();
    hold(w[(kSegmentChunks - 1) % 2]);
    ring.release(1);
    add_segment(total, acc);
  }
  if (left == 0) return;
  for (int k = 0; k < left; ++k) {  // the last segment, shorter
    const int step = k % kChunkTiles;
    if (step == 0) {
      ring.wait_full();
    }
    const uint4 w = load_shared(ring.data() + lane_weights + static_cast<uint32_t>(step * kTileBytes));
    wgmma_fence();
    wgmma(acc, w, descriptor(ring.data() + kWeightBytes) + static_cast<uint64_t>(2 * step), k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    if (step < kChunkTiles - 1 && k < left - 1) continue;
    ring.next();
    ring.release(1);
  }
  add_segment(total, acc);
}

// One item: its dots, then its results to where the writing warpgroup finds them.
template <int kTokens>
__device__ __forceinline__ void take_item(HopperShared& shared, int k_tiles, Ring& ring, uint32_t& phase) {
  const int thread = static_cast<int>(threadIdx.x) - 2 * kWarpgroup;
  const int lane = thread % 32;
  float total[kTokens / 2];
  multiply<kTokens>(ring, k_tiles, static_cast<uint32_t>(thread / 32 * kRunBytes + lane * 16), total);
  barrier_wait(shared_address(&shared.results_empty), phase ^ 1u);
  phase ^= 1u;
  const int row = thread / 32 * kTile + lane / 4;
  float* const low = shared.results + staged(lane % 4 * 2, row);  // tokens 8 further: the same place in a row
  float* const high = shared.results + staged(lane % 4 * 2, row + 8);
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

__device__ __forceinline__ void multiply_items(const HopperWork& work, HopperShared& shared) {
  Ring ring(shared);
  uint32_t phase = 0;
  int entry = 0;
  for (int index = static_cast<int>(blockIdx.x); index < shared.first[work.entries];
       index += static_cast<int>(gridDim.x)) {
    const HopperItem item = item_at(work, shared.first, index, entry);
    const int k_tiles = work.parts[item.part].k_tiles;
    switch ((item.count + 15) / 16) {
      case 1:
        item.count <= 8 ? take_item<8>(shared, k_tiles, ring, phase) : take_item<16>(shared, k_tiles, ring, phase);
        break;
      case 2:
        take_item<32>(shared, k_tiles, ring, phase);
        break;
      case 3:
        take_item<48>(shared, k_tiles, ring, phase);
        break;
      case 4:
        take_item<64>(shared, k_tiles, ring, phase);
        break;
      case 5:
        take_item<80>(shared, k_tiles, ring, phase);
        break;
      case 6:
        take_item<96>(shared, k_tiles, ring, phase);
        break;
      case 7:
        take_item<112>(shared, k_tiles, ring, phase);
        break;
      default:
        take_item<128>(shared, k_tiles, ring, phase);
    }
  }
}

}  // namespace assay::cuda
