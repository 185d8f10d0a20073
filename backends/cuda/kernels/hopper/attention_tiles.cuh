// Keys and values of a sequence in shared memory, tile by tile, as attend_hopper.cu's blocks go through them.
#pragma once

#include "backends/cuda/kernels/attention_bf16.cuh"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/kernels/hopper/ptx.cuh"

namespace assay::cuda::hopper_attention {

inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kGroupRows = 64;   // queries of a warpgroup
inline constexpr int kConsumers = kBundle / kGroupRows;
inline constexpr int kThreads = (1 + kConsumers) * kWarpgroup;  // the first warpgroup copies
inline constexpr int kTilePositions = kSubsplit;
inline constexpr int kSplitTiles = kSplit / kTilePositions;
inline constexpr int kStages = 4;         // tiles under way
inline constexpr uint32_t kLine = 128;    // bytes: 64 channels of a row
inline constexpr uint32_t kEight = 1024;  // bytes: eight lines, a swizzle's period
inline constexpr uint32_t kHalfTile = kTilePositions * kLine;
inline constexpr uint32_t kHalfQueries = kBundle * kLine;

// Shared memory: queries; sums of the splits so far; of every stage keys, then values; of every stage four barriers.
template <int kChannels>
struct Layout {
  static constexpr uint32_t kTile = kChannels / 64 * kHalfTile;
  static constexpr uint32_t kStage = 2 * kTile;
  static constexpr uint32_t kSums = kChannels / 64 * kHalfQueries;
  static constexpr uint32_t kFirstStage = kSums + kBundle * kChannels * sizeof(float);
  static constexpr uint32_t kBarriers = kFirstStage + kStages * kStage;
  static constexpr uint32_t kBytes = kBarriers + kStages * 4 * sizeof(uint64_t);
};

// Where byte `at` of a line of row `row` lies, from the first of the rows.
__device__ inline uint32_t swizzled(uint32_t row, uint32_t at) { return row * kLine + (at ^ row % 8 * 16); }

// Keys and queries keep every 32 channels in the order of the score's two mma's: of every eight the first four, then
// the others. Byte of the four channels 4 `four` and on within a row.
__device__ inline uint32_t score_place(uint32_t four) { return (four / 8 * 2 + four % 2) * 32 + four % 8 / 2 * 8; }

__device__ inline void copy_8(uint32_t to, const void* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(there ? 8 : 0) : "memory");
}
__device__ inline void copy_16(uint32_t to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

enum class Half : uint32_t { kKeys, kValues };

// Keys or values of tile `tile` in its stage.
template <int kChannels>
class Slot {
 public:
  __device__ Slot(uint32_t memory, Half half, int tile) : memory_(memory), half_(half), tile_(tile) {}
  __device__ uint32_t data() const {
    using Places = Layout<kChannels>;
    return memory_ + Places::kFirstStage + stage() * Places::kStage + static_cast<uint32_t>(half_) * Places::kTile;
  }
  __device__ uint32_t full() const {
    return memory_ + Layout<kChannels>::kBarriers + (stage() * 4 + static_cast<uint32_t>(half_)) * 8;
  }
  __device__ uint32_t empty() const { return full() + 16; }
  __device__ void wait_full() const { barrier_wait(full(), turn() % 2); }
  __device__ void wait_empty() const { barrier_wait(empty(), (turn() + 1) % 2); }
  // The warp is done with it.
  __device__ void release() const {
    if (threadIdx.x % 32 == 0) barrier_arrive(empty());
  }

 private:
  __device__ uint32_t stage() const { return static_cast<uint32_t>(tile_) % kStages; }
  __device__ uint32_t turn() const { return static_cast<uint32_t>(tile_) / kStages; }

  uint32_t memory_;
  Half half_;
  int tile_;
};

// Tokens first .. first + count - 1, a head of them.
struct Work {
  int first;
  int count;
  int head;
};

__device__ inline Work work_of_block(const AttendArgs& a) {
  const int64_t bundle = gridDim.y - 1 - blockIdx.y;  // the longest ones first
  return {a.tokens.bundles[2 * bundle], a.tokens.bundles[2 * bundle + 1], static_cast<int>(blockIdx.x)};
}

// The copying warpgroup: keys and values of every tile, zeros behind the last position.
template <int kChannels>
__device__ void copy_tiles(const AttendArgs& a, const Work& work, uint32_t memory) {
  constexpr int kFours = kChannels / 4;
  constexpr int kEights = kChannels / 8;
  constexpr int kRows = 16;  // of a warp
  const auto lane = threadIdx.x % 32;
  const auto first_row = threadIdx.x / 32 * kRows;
  const int group = work.head / a.per_group;
  const auto* keys = static_cast<const Bfloat16*>(a.cache.keys);
  const auto* values = static_cast<const Bfloat16*>(a.cache.values);
  const int last = a.tokens.position[work.first + work.count - 1];
  for (int begin = 0; begin <= last; begin += kTilePositions) {
    const int mine = begin + static_cast<int>(first_row + lane % kRows);
    const int64_t offset =
        mine <= last ? cache_offset(a.cache, a.tokens, a.layer, work.first, group, mine) : int64_t{-1};
    const Slot<kChannels> to_keys(memory, Half::kKeys, begin / kTilePositions);
    const Slot<kChannels> to_values(memory, Half::kValues, begin / kTilePositions);
    to_keys.wait_empty();
#pragma unroll
    for (int i = 0; i < kRows * kFours / 32; ++i) {
      const uint32_t row = (32 * i + lane) / kFours;
      const uint32_t four = (32 * i + lane) % kFours;
      const int64_t from = __shfl_sync(kWholeWarp, offset, static_cast<int>(row));
      const uint32_t place = score_place(four);
      copy_8(to_keys.data() + place / kLine * kHalfTile + swizzled(first_row + row, place % kLine),
             keys + max(from, int64_t{0}) + 4 * four, from >= 0);
    }
    barrier_arrive_after_copies(to_keys.full());
    to_values.wait_empty();
#pragma unroll
    for (int i = 0; i < kRows * kEights / 32; ++i) {
      const uint32_t row = (32 * i + lane) / kEights;
      const uint32_t place = (32 * i + lane) % kEights * 16;
      const int64_t from = __shfl_sync(kWholeWarp, offset, static_cast<int>(row));
      copy_16(to_values.data() + place / kLine * kHalfTile + swizzled(first_row + row, place % kLine),
              values + max(from, int64_t{0}) + place / 2, from >= 0);
    }
    barrier_arrive_after_copies(to_values.full());
  }
}

}  // namespace assay::cuda::hopper_attention
