// What the blocks of linear_hopper.cu do one after the other: items of 128 (narrow: 64) rows and up to kMostTokens
// tokens of one expert, those of the same weights side by side.
#pragma once

#include <cuda.h>

#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/hopper/linear_hopper.h"

namespace assay::cuda {

inline constexpr int kItemRowTiles = 8;    // of 16 rows
inline constexpr int kNarrowRowTiles = 4;  // of an item where there would be few: its tokens are halved instead
inline constexpr int kMostTokens = 128;    // of an item
inline constexpr int kMostEntries = 320;   // experts of all jobs; a job without groups counts as one

struct HopperPart {
  CUtensorMap map;    // of the weights: (row tiles of all experts, bytes of K), in boxes of a stage
  CUtensorMap x_map;  // of x: (rows, columns), in boxes of box_rows
  LinearArgs linear;  // groups: null, as that is host memory
  ActivateArgs activate;
  Groups groups;
  int entries = 0;
  int row_tiles = 0;               // of an expert
  int item_tiles = kItemRowTiles;  // or kNarrowRowTiles
  int row_blocks = 0;              // of item_tiles, in clusters of two: pairs of them
  int k_tiles = 0;
  int box_rows = 0;           // a multiple of 8; 0: the tokens of an item lie anywhere
  bool sorted_inner = false;  // activate.y's rows lie as `order` has them
};

struct HopperWork {
  HopperPart parts[kMostJobs];
  int entries = 0;              // of all parts
  bool groups_are_new = false;  // made by the kernel before this one
};

struct HopperItem {
  int part;
  int expert;
  int row_block;
  int begin;  // first token, within `order` where there is one
  int count;  // of tokens, 0 .. kMostTokens
  bool once;  // no other item reads these weights
};

// Blocks that work on neighbouring items at the same time: kRows row blocks times kTiles tiles of tokens. What several
// of them need is copied once, to all that need it.
template <int kRowBlocks, int kTokenTiles>
struct Cluster {
  static constexpr int kRows = kRowBlocks;
  static constexpr int kTiles = kTokenTiles;
  static constexpr int kBlocks = kRows * kTiles;
};

// Tiles of an expert's tokens, a multiple of `together`.
constexpr int tiles_of(int tokens, int together) {
  return round_up((tokens + kMostTokens - 1) / kMostTokens, together);
}

// Tokens of one of them: as even a cut as there is, in eights.
constexpr int tile_tokens(int tokens, int together) {
  const int tiles = tiles_of(tokens, together);
  return tiles == 0 ? 0 : round_up((tokens + tiles - 1) / tiles, kTileTokens);
}

// In shared memory. Entry e is expert e of the first part, or of the second behind those.
struct HopperPlan {
  int first[kMostEntries + 1];          // items before entry e
  int begin[kMostEntries + kMostJobs];  // begin[e + part]: first token of entry e; one behind each part's last
};

// Every thread of the block. Reads the groups.
template <class Blocks>
__device__ void plan_items(const HopperWork& work, HopperPlan& plan) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x < 32) {
    int before = 0;
    for (int base = 0; base < work.entries; base += 32) {
      const int e = base + lane;
      const int p = e < work.parts[0].entries ? 0 : 1;
      const HopperPart& part = work.parts[p];
      int items = 0;
      if (e < work.entries) {
        const int expert = e - p * work.parts[0].entries;
        const bool grouped = part.groups.order != nullptr;
        const int begin = grouped ? __ldcg(part.groups.begin + expert) : 0;
        const int end = grouped ? __ldcg(part.groups.begin + expert + 1) : part.linear.tokens;
        items = tiles_of(end - begin, Blocks::kTiles) / Blocks::kTiles * part.row_blocks;
        plan.begin[e + p] = begin;
        if (expert + 1 == part.entries) plan.begin[e + p + 1] = end;
      }
      int behind = items;
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(kWholeWarp, behind, step);
        behind += lane >= step ? other : 0;
      }
      if (e < work.entries) plan.first[e + 1] = before + behind;
      before += __shfl_sync(kWholeWarp, behind, 31);
    }
    if (lane == 0) plan.first[0] = 0;
  }
  __syncthreads();
}

// The items of this block: first_item(), and every item_step() further. Blocks of a cluster have the same numbers.
template <class Blocks>
__device__ int first_item() {
  return static_cast<int>(blockIdx.x) / Blocks::kBlocks;
}
template <class Blocks>
__device__ int item_step() {
  return static_cast<int>(gridDim.x) / Blocks::kBlocks;
}
template <class Blocks>
__device__ int row_rank() {
  return static_cast<int>(blockIdx.x) % Blocks::kRows;
}
template <class Blocks>
__device__ int tile_rank() {
  return static_cast<int>(blockIdx.x) % Blocks::kBlocks / Blocks::kRows;
}

// This block's part of item `index`, below first[entries]; entry: that of an earlier item.
template <class Blocks>
__device__ HopperItem item_at(const HopperWork& work, const HopperPlan& plan, int index, int& entry) {
  while (plan.first[entry + 1] <= index) ++entry;
  HopperItem item;
  item.part = entry < work.parts[0].entries ? 0 : 1;
  item.expert = entry - item.part * work.parts[0].entries;
  const int begin = plan.begin[entry + item.part];
  const int tokens = plan.begin[entry + item.part + 1] - begin;
  const int tiles = tiles_of(tokens, Blocks::kTiles);
  const int each = tile_tokens(tokens, Blocks::kTiles);
  const int groups = tiles / Blocks::kTiles;
  const int place = index - plan.first[entry];
  const int tile = place % groups * Blocks::kTiles + tile_rank<Blocks>();
  item.row_block = place / groups * Blocks::kRows + row_rank<Blocks>();
  item.begin = begin + tile * each;
  item.count = max(0, min(each, tokens - tile * each));
  item.once = groups == 1;
  return item;
}

// Token (or slot) `i` of the item.
__device__ inline int item_token(const HopperPart& part, const HopperItem& item, int i) {
  return part.groups.order == nullptr ? item.begin + i : part.groups.order[item.begin + i];
}

}  // namespace assay::cuda
