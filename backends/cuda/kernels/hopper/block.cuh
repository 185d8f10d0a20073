// The parts of a block of linear_hopper.cu and what they share. Four warpgroups: one copies weights and tokens into a
// ring of stages, two multiply (64 rows each), one writes results, so that tensor cores do not wait for activations.
#pragma once

#include "backends/cuda/kernels/dependent_launch.cuh"
#include "backends/cuda/kernels/hopper/plan.cuh"
#include "backends/cuda/kernels/hopper/ptx.cuh"

namespace assay::cuda {

inline constexpr int kWarpgroup = 128;     // threads
inline constexpr int kMultiplyGroups = 2;  // warpgroups
inline constexpr int kHopperThreads = (2 + kMultiplyGroups) * kWarpgroup;
inline constexpr int kCopyRegisters = 64;  // a thread
inline constexpr int kWriteRegisters = 64;
inline constexpr int kMultiplyRegisters = 192;
static_assert((kCopyRegisters + kWriteRegisters + kMultiplyGroups * kMultiplyRegisters) * kWarpgroup <= 65536);

inline constexpr int kChunkTiles = 4;  // of 16 columns, a stage
inline constexpr int kStages = 5;
inline constexpr int kTileBytes = kTile * kTile * 2;
inline constexpr int kRunBytes = kChunkTiles * kTileBytes;      // of one row tile in a stage: 2 KB
inline constexpr int kWeightBytes = kItemRowTiles * kRunBytes;  // of a stage: 16 KB
inline constexpr int kRowBytes = kChunkTiles * kTile * 2;       // of a token in a stage: 128
inline constexpr int kMapBytes = 8;                             // of an element of the weights' map
inline constexpr int kStageBytes = kWeightBytes + kMostTokens * kRowBytes;
inline constexpr int kItemRows = kItemRowTiles * kTile;

// In dynamic shared memory, at its start: a multiple of 1024, where the swizzle of a stage begins.
struct HopperShared {
  uint8_t stages[kStages * kStageBytes];
  float results[kMostTokens * kItemRows];  // of one item: staged()
  uint64_t tokens[kStages];                // the copying threads' part is there
  uint64_t full[kStages];                  // everything is, for wgmma to see
  uint64_t empty[kStages];                 // every multiplying warp has used them
  uint64_t results_full;
  uint64_t results_empty;
  HopperPlan plan;
};
static_assert(sizeof(HopperShared) <= 232448);

// Where the result of a row of the item lies; four neighbouring rows lie together, and the writes of a warp of wgmma
// (8 rows of each of 4 tokens 2 apart) in 32 banks.
__device__ inline int staged(int token, int row) { return token * kItemRows + (row ^ token / 2 % 4 * 8); }

// Where in the ring of stages a thread is.
class Ring {
 public:
  __device__ explicit Ring(HopperShared& shared)
      : tokens_(shared_address(shared.tokens)),
        full_(shared_address(shared.full)),
        empty_(shared_address(shared.empty)),
        stages_(shared_address(shared.stages)) {}

  __device__ uint32_t tokens() const { return tokens_ + static_cast<uint32_t>(stage_) * 8; }
  __device__ uint32_t full() const { return full_ + static_cast<uint32_t>(stage_) * 8; }
  __device__ uint32_t data() const { return stages_ + static_cast<uint32_t>(stage_ * kStageBytes); }
  __device__ void wait_tokens() const { barrier_wait(tokens(), phase_); }
  __device__ void wait_full() const { barrier_wait(full(), phase_); }
  __device__ void wait_empty() const { barrier_wait(empty_ + static_cast<uint32_t>(stage_) * 8, phase_ ^ 1u); }
  __device__ void next() {
    if (++stage_ < kStages) return;
    stage_ = 0;
    phase_ ^= 1u;
  }
  // The warp is done with the stage `back` before this one; all blocks of the cluster are told, as they all copy to it.
  template <class Blocks>
  __device__ void release(int back) const {
    const int stage = stage_ < back ? stage_ + kStages - back : stage_ - back;
    const uint32_t barrier = empty_ + static_cast<uint32_t>(stage) * 8;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (Blocks::kBlocks == 1) {
      if (lane == 0) barrier_arrive(barrier);
    } else {
      if (lane < Blocks::kBlocks) barrier_arrive_at(barrier, lane);
    }
  }

 private:
  uint32_t tokens_;
  uint32_t full_;
  uint32_t empty_;
  uint32_t stages_;
  int stage_ = 0;
  uint32_t phase_ = 0;
};

}  // namespace assay::cuda
