// Keys and values of a sequence in shared memory, tile by tile, as attend_hopper.cu's blocks go through them.
#pragma once

#include "backends/cuda/kernels/attention_bf16.cuh"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/kernels/hopper/ptx.cuh"

namespace assay::cuda::hopper_attention {

inline constexpr int kWarpgroup = 128;  // threads
inline constexpr int kGroupRows = 64;   // queries of a warpgroup
inline constexpr int kTilePositions = kSubsplit;
inline constexpr int kSplitTiles = kSplit / kTilePositions;
inline constexpr uint32_t kLine = 128;    // bytes: 64 channels of a row
inline constexpr uint32_t kEight = 1024;  // bytes: eight lines, a swizzle's period
inline constexpr uint32_t kHalfTile = kTilePositions * kLine;

// A block of one warpgroup that copies and `groups` that multiply, and its shared memory: queries; sums of the splits
// so far; ones; of every stage keys, then values; of every stage four barriers. With one group two blocks fit a
// multiprocessor.
template <int channels, int groups>
struct BlockOf {
  static constexpr int kChannels = channels;
  static constexpr int kRows = groups * kGroupRows;
  static constexpr int kThreads = (1 + groups) * kWarpgroup;
  static constexpr int kResident = groups == 1 ? 2 : 1;
  static constexpr int kCopierRegisters = 40;
  static constexpr int kRegisters = groups == 1 ? 216 : 232;
  static constexpr int kStages = groups == 1 ? 2 : 4;  // tiles under way
  static constexpr uint32_t kHalfQueries = kRows * kLine;
  static constexpr uint32_t kTile = kChannels / 64 * kHalfTile;
  static constexpr uint32_t kStage = 2 * kTile;
  static constexpr uint32_t kSumsSoFar = kChannels / 64 * kHalfQueries;
  static constexpr uint32_t kFirstStage = kSumsSoFar + kRows * kChannels * sizeof(float);
  static constexpr uint32_t kBarriers = kFirstStage + kStages * kStage;
  static constexpr uint32_t kOnesTile = kBarriers + kStages * 4 * sizeof(uint64_t);
  static constexpr uint32_t kBytes = kOnesTile + 16 * 8 * 2;
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
template <class Block>
class Slot {
 public:
  __device__ Slot(uint32_t memory, Half half, int tile) : memory_(memory), half_(half), tile_(tile) {}
  __device__ uint32_t data() const {
    return memory_ + Block::kFirstStage + stage() * Block::kStage + static_cast<uint32_t>(half_) * Block::kTile;
  }
  __device__ uint32_t full() const {
    return memory_ + Block::kBarriers + (stage() * 4 + static_cast<uint32_t>(half_)) * 8;
  }
  __device__ uint32_t empty() const { return full() + 16; }
  __device__ void wait_full() const { barrier_wait(full(), turn() % 2); }
  __device__ void wait_empty() const { barrier_wait(empty(), (turn() + 1) % 2); }
  // The warp is done with it.
  __device__ void release() const {
    if (threadIdx.x % 32 == 0) barrier_arrive(empty());
  }

 private:
  __device__ uint32_t stage() const { return static_cast<uint32_t>(tile_) % Block::kStages; }
  __device__ uint32_t turn() const { return static_cast<uint32_t>(tile_) / Block::kStages; }

  uint32_t memory_;
  Half half_;
  int tile_;
};

// Tokens first .. first + count - 1, a head of them.
struct Work {
  int first;
  int count;
  int head;
  int bundle;  // tokens of the bundle that they are of
};

// Where every bundle is cut in two, the second half of the blocks, which shares multiprocessors with the first, begins
// with the shortest ones.
template <class Block>
__device__ Work work_of_block(const AttendArgs& a) {
  constexpr int kParts = kBundle / Block::kRows;
  const auto count = static_cast<int>(gridDim.y);
  const auto y = static_cast<int>(blockIdx.y);
  const int index = y < count / kParts || kParts == 1 ? count - 1 - y : y - count / kParts;  // the longest ones first
  const int part = index % kParts;
  const int32_t* bundle = a.tokens.bundles + 2 * int64_t{index / kParts};
  return {bundle[0] + part * Block::kRows, min(bundle[1] - part * Block::kRows, Block::kRows),
          static_cast<int>(blockIdx.x), bundle[1]};
}

// The copying warpgroup: keys and values of every tile, zeros behind the last position.
template <class Block>
class Copier {
 public:
  __device__ Copier(const AttendArgs& a, const Work& work, uint32_t memory)
      : a_(a),
        memory_(memory),
        group_(work.head / a.per_group),
        first_row_(threadIdx.x / 32 * kRows),
        last_(a.tokens.position[work.first + work.count - 1]),
        table_(a.tokens.blocks + a.tokens.table[work.first]) {}

  __device__ void copy_tiles() const {
    const int tiles = last_ / kTilePositions + 1;
    int rows = rows_of(0);
    int next = rows_of(2);
    for (int tile = 0; tile < tiles; ++tile) {
      const Slot<Block> keys(memory_, Half::kKeys, tile);
      const Slot<Block> values(memory_, Half::kValues, tile);
      const int left = last_ + 1 - tile * kTilePositions - static_cast<int>(first_row_);
      keys.wait_empty();
      copy_keys(keys.data(), rows, tile % 2 * kRows, left);
      barrier_arrive_after_copies(keys.full());
      values.wait_empty();
      copy_values(values.data(), rows, tile % 2 * kRows, left);
      barrier_arrive_after_copies(values.full());
      if (tile % 2 == 0) continue;
      rows = next;
      next = rows_of(tile + 3);
    }
  }

 private:
  static constexpr int kChannels = Block::kChannels;
  static constexpr int kRows = 16;  // positions of a tile that a warp copies

  // Where the lane's row of `tile` (lanes below 16) or of the tile after it is, in keys or values of kChannels; behind
  // the last position: the last one's. Looked up two tiles early.
  __device__ int rows_of(int tile) const {
    const CacheView& cache = a_.cache;
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const int wanted = (tile + lane / kRows) * kTilePositions + static_cast<int>(first_row_) + lane % kRows;
    const int position = min(wanted, last_);
    const int block = a_.layer * cache.block_count + table_[position / cache.block_size];
    return (block * cache.groups + group_) * cache.block_size + position % cache.block_size;
  }

  // `left`: positions from the warp's first row on, the rest are zeros.
  __device__ void copy_keys(uint32_t to, int rows, int first_lane, int left) const {
    constexpr int kFours = kChannels / 4;
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const uint32_t place = score_place(static_cast<uint32_t>(lane % kFours));
    const Bfloat16* keys = static_cast<const Bfloat16*>(a_.cache.keys) + lane % kFours * 4;
    to += place / kLine * kHalfTile + first_row_ * kLine;
#pragma unroll
    for (int i = 0; i < kRows * kFours / 32; ++i) {
      const int row = i * (32 / kFours) + lane / kFours;
      const int from = __shfl_sync(kWholeWarp, rows, first_lane + row);
      copy_8(to + swizzled(static_cast<uint32_t>(row), place % kLine), keys + int64_t{from} * kChannels, row < left);
    }
  }
  __device__ void copy_values(uint32_t to, int rows, int first_lane, int left) const {
    constexpr int kEights = kChannels / 8;
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const uint32_t place = static_cast<uint32_t>(lane % kEights) * 16;
    const Bfloat16* values = static_cast<const Bfloat16*>(a_.cache.values) + lane % kEights * 8;
    to += place / kLine * kHalfTile + first_row_ * kLine;
#pragma unroll
    for (int i = 0; i < kRows * kEights / 32; ++i) {
      const int row = i * (32 / kEights) + lane / kEights;
      const int from = __shfl_sync(kWholeWarp, rows, first_lane + row);
      copy_16(to + swizzled(static_cast<uint32_t>(row), place % kLine), values + int64_t{from} * kChannels, row < left);
    }
  }

  const AttendArgs& a_;
  uint32_t memory_;
  int group_;
  uint32_t first_row_;
  int last_;
  const int32_t* table_;
};

}  // namespace assay::cuda::hopper_attention
