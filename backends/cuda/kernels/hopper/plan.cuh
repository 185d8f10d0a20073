// What the blocks of linear_hopper.cu do one after the other: items of 128 rows and up to kMostTokens tokens of one
// expert, those of the same weights side by side.
#pragma once

#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/hopper/linear_hopper.h"

namespace assay::cuda {

inline constexpr int kItemRowTiles = 8;   // of 16 rows
inline constexpr int kMostTokens = 128;   // of an item
inline constexpr int kMostEntries = 512;  // experts of all jobs; a job without groups counts as one

struct HopperPart {
  LinearArgs linear;  // groups: null, as that is host memory
  ActivateArgs activate;
  Groups groups;
  int entries = 0;
  int row_blocks = 0;  // of 128 rows
  int k_tiles = 0;
};

struct HopperWork {
  HopperPart parts[kMostJobs];
  int entries = 0;  // of all parts
};

struct HopperItem {
  int part;
  int expert;
  int row_block;
  int begin;  // first token, within `order` where there is one
  int count;  // of tokens, 1 .. kMostTokens
  bool once;  // no other item reads these weights
};

// Tokens of one expert, or all.
struct HopperTokens {
  int begin;
  int count;
};

__device__ inline HopperTokens tokens_of(const HopperPart& part, int expert) {
  if (part.groups.order == nullptr) return {0, part.linear.tokens};
  const int begin = part.groups.begin[expert];
  return {begin, part.groups.begin[expert + 1] - begin};
}

__device__ inline int tiles_of(int tokens) { return (tokens + kMostTokens - 1) / kMostTokens; }

// Fills first[e] with the number of items before entry e, up to first[entries]: all items. Every thread of the block.
__device__ inline void plan_items(const HopperWork& work, int* first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x < 32) {
    int before = 0;
    for (int begin = 0; begin < work.entries; begin += 32) {
      const int e = begin + lane;
      const int p = e < work.parts[0].entries ? 0 : 1;
      int items = 0;
      if (e < work.entries) {
        const int count = tokens_of(work.parts[p], e - p * work.parts[0].entries).count;
        items = tiles_of(count) * work.parts[p].row_blocks;
      }
      int behind = items;
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(kWholeWarp, behind, step);
        behind += lane >= step ? other : 0;
      }
      if (e < work.entries) first[e + 1] = before + behind;
      before += __shfl_sync(kWholeWarp, behind, 31);
    }
    if (lane == 0) first[0] = 0;
  }
  __syncthreads();
}

// Item `index`, below first[entries]; entry: that of an earlier item.
__device__ inline HopperItem item_at(const HopperWork& work, const int* first, int index, int& entry) {
  while (first[entry + 1] <= index) ++entry;
  HopperItem item;
  item.part = entry < work.parts[0].entries ? 0 : 1;
  item.expert = entry - item.part * work.parts[0].entries;
  const HopperTokens tokens = tokens_of(work.parts[item.part], item.expert);
  const int tiles = tiles_of(tokens.count);
  const int each = (tokens.count + tiles - 1) / tiles;
  const int rounded = (each + kTileTokens - 1) / kTileTokens * kTileTokens;
  const int place = index - first[entry];
  const int tile = place % tiles;
  item.row_block = place / tiles;
  item.begin = tokens.begin + tile * rounded;
  item.count = min(rounded, tokens.count - tile * rounded);
  item.once = tiles == 1;
  return item;
}

// Token (or slot) `i` of the item.
__device__ inline int item_token(const HopperPart& part, const HopperItem& item, int i) {
  return part.groups.order == nullptr ? item.begin + i : part.groups.order[item.begin + i];
}

}  // namespace assay::cuda
