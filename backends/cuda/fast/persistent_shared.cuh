// What the parts of the persistent kernel share: arguments, shared memory, the barrier of all blocks, the division of
// work.
#pragma once

#include "backends/cuda/fast/attention_math.cuh"
#include "backends/cuda/fast/norm.cuh"
#include "backends/cuda/fast/persistent.h"
#include "backends/cuda/fast/pick.cuh"
#include "backends/cuda/fast/route.cuh"

namespace assay::cuda::fast::persistent {

constexpr int kRoundSlots = 8;  // active experts between two barriers of the down phase
template <int kColumns>
constexpr int kUnits = kColumns == 1 ? 24 : 16;  // of the ring; it holds the keys and values of a task
constexpr int kRoundTiles = 4;                   // row tiles between two barriers of the block
constexpr int kMostExpertSegments = 6;           // of an expert's second layer
constexpr int kMostSharedSegments = 48;
constexpr int kScoreStride = kSplit + 4;
constexpr int kProbabilityStride = kSplit + 8;
constexpr int kKeyBytes = kHeadSize * 2;
constexpr int kUnitPositions = kUnitBytes / kKeyBytes;  // of keys or values in a unit

// Where activations go from block to block: words that are 0 until they are there (ptx.cuh). Every layer has words of
// its own, (layers, tokens, BoardPlaces::size), and there are two sets: a launch uses one and clears the other for the
// next launch of the kind.
struct BoardPlaces {
  static constexpr int kAttended = 0;                  // (kHidden / 2) pairs of bf16 in operand order
  static constexpr int kProjected = kHidden / 2;       // (kHidden) residual after the projection
  static constexpr int kX = kProjected + kHidden;      // (kHidden) residual after the experts
  static constexpr int kLogits = kX + kHidden;         // (kMostExperts) of the router
  static constexpr int kQkv = kLogits + kMostExperts;  // (rows of qkv)
};

struct Args {
  LayerWeights layers[kMostLayers];
  int layer_count;
  int groups;
  int heads_per_group;
  float eps;
  bool rounded_router;
  const float* final_gamma;
  const void* output;
  int vocabulary;
  const void* embeddings;
  const float* rotary;
  StepBuffers buffers;
  CacheView cache;  // of layer 0
  size_t layer_bytes;
  int tokens;
  int splits;
  const int32_t* ids;
  const int32_t* positions;
  float* logits;
  uint16_t* chosen;
  float* margins;
  int routing_stride;
  PickArgs pick;
  uint32_t* counters;  // barrier, tokens of the launch before, leaving, launches before this one
  uint32_t* board;     // (2, layers, most_tokens, board_size)
  int most_tokens;
  int board_size;
  int board_inner;  // where pairs of bf16 of the inner vectors are, in operand order: experts ascending, then shared
  uint64_t* splits_tagged;  // (tokens, heads, splits, kSplitNumbers): weighted values, largest score, sum
  int in_flight;            // units of a block
  long long* times;         // (blocks, 16) sums of cycles; or null
};

constexpr int kStagedNumbers = 6 * 1408 + 2816 + kSegment;  // inner vectors of one token in shared memory

struct AttentionShared {
  __align__(16) bf16 query[kMostHeadsPerGroup][kHeadSize + 8];
  float scores[kMostHeadsPerGroup][kScoreStride];
  __align__(16) bf16 high[kMostHeadsPerGroup][kProbabilityStride];
  __align__(16) bf16 low[kMostHeadsPerGroup][kProbabilityStride];
  float top[kMostHeadsPerGroup][kSplit / kSubsplit];
  float ones[kMostHeadsPerGroup];
};

// Splits of a head that are being put together, kRoundSplits at a time, kCombined channels of them.
constexpr int kValueWarps = kHeadSize / 32;  // that have channels of the values
constexpr int kRoundSplits = 32;
constexpr int kCombined = 32;
struct CombineShared {
  float values[kRoundSplits][kCombined];
  float top[kRoundSplits];
  float sum[kRoundSplits];
  float before[kRoundSplits];  // what the splits before are scaled by
  float here[kRoundSplits];    // what the split itself is scaled by
};

// The board's set of this launch, or the one that it clears.
__device__ inline uint32_t* board_set(const Args& a, bool other) {
  const bool second = (__ldcg(a.counters + 3) % 2 != 0) != other;
  return a.board + (second ? static_cast<size_t>(a.layer_count) * a.most_tokens * a.board_size : 0);
}

// What the block attends to: the same in every layer.
struct Task {
  int token, group, split;
  int position;                // of the token
  int count;                   // positions of the split, the new one included
  uint32_t rows[kSplit / 16];  // of the cache, (blocks, groups, block_size): where every sixteenth position is
  __device__ bool newest() const { return split * kSplit + count == position + 1; }
  __device__ int units() const { return (count + kUnitPositions - 1) / kUnitPositions; }  // of keys, of values
};
struct Tasks {
  int count;
  Task task[kMostTasks];
};

// All blocks meet. What a block wrote before arrive() is seen by every block after its wait().
class Barrier {
 public:
  __device__ Barrier(uint32_t* counter, long long* times) : counter_(counter), times_(times), last_(cycles()) {}
  __device__ void stamp(int place) {
    if (times_ != nullptr && threadIdx.x == 0) {
      const long long now = cycles();
      times_[blockIdx.x * 16 + place] += now - last_;
      last_ = now;
    }
  }
  __device__ void arrive(int place) {
    block_sync();
    stamp(2 * place);
    target_ += gridDim.x;
    if (threadIdx.x == 0) add_release(counter_, 1);
  }
  __device__ void wait(int place) {
    if (threadIdx.x == 0) {
      wait_until(counter_, target_);
    }
    block_sync();
    stamp(2 * place + 1);
  }

 private:
  uint32_t* counter_;
  long long* times_;
  long long last_;
  uint32_t target_ = 0;
};

// Which row tiles a block has in a phase: first, first + grid, ...
struct Turn {
  int block, grid;
  __device__ int qkv() const { return (block + 76) % grid; }
  __device__ int router() const {
    return grid - 1 - block;
  }  // last blocks: those without a tile of projection and down
  __device__ int shared() const { return grid - 1 - block; }
  __device__ int routed() const { return block; }
  __device__ int strip() const { return block; }  // of projection and down
  // The block's n-th task of attention: forth and back, so that the last, short ones even out.
  __device__ int task(int n) const { return n * grid + (n % 2 == 0 ? block : grid - 1 - block); }
};
__device__ inline int count_tiles(int first, int tiles, int grid) {
  return first < tiles ? (tiles - first + grid - 1) / grid : 0;
}

// The block's ring of units. One warp requests them in the order of their use; unit `sequence` of the block goes to
// warp (sequence - first of the phase) % kWarps. Few are in flight at a time: what is asked for at once queues in the
// memory system, and the loads that the block waits for would queue behind it.
template <int kUnits>
struct Ring {
  __align__(128) char units[kUnits][kUnitBytes];
  uint64_t full[kUnits];
  uint64_t empty[kUnits];
  uint64_t known;     // a phase for every layer whose routing is known
  uint64_t attended;  // ends when the block's attention tasks are known
};

template <int kColumns>
struct Shared {
  static constexpr int kDownUnits =
      kRoundSlots * kMostExpertSegments + kMostSharedSegments;  // most units between two barriers of the down phase
  Ring<kUnits<kColumns>> ring;
  union {
    struct {
      __align__(16) bf16 operand[kColumns * operand_stride(kHidden)];
      float norm[kNormScratch];
      __align__(16) float raw[kColumns == 1 ? kNormRaw : 4];
    } in;
    AttentionShared attention;
    CombineShared combine;
    PickScratch pick;
    bf16 staged[kColumns == 1 ? kStagedNumbers : 8];
  };
  union {
    float partials[kRoundTiles * kWarps * 16 * kColumns];
    float down[kDownUnits * 16 * kColumns];
  };
  Routed routed;
  Tasks tasks;
};
static_assert(sizeof(Shared<1>) <= 232448 && sizeof(Shared<8>) <= 232448);

}  // namespace assay::cuda::fast::persistent
