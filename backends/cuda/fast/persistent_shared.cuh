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
constexpr int kUnits = kColumns == 1 ? 24 : 15;  // of the ring
template <int kColumns>
constexpr int kRoundTiles = kColumns == 1 ? 16 : 4;
constexpr int kMostExpertSegments = 6;  // of an expert's second layer
constexpr int kMostSharedSegments = 48;
constexpr int kHeadRows = 1;                   // query heads of a group
constexpr int kValueRow = kHeadSize * 2 + 16;  // bytes of a value in shared memory: no bank conflicts
constexpr int kScoreStride = kSplit + 4;
constexpr int kProbabilityStride = kSplit + 8;

// Activations that go from block to block.
struct Tagged {
  uint64_t* qkv;        // (tokens, rows of qkv)
  uint64_t* attended;   // (tokens, kHidden / 2) pairs in operand order
  uint64_t* projected;  // (tokens, kHidden) residual after the projection
  uint64_t* x;          // (tokens, kHidden) residual after the experts
  uint64_t* logits;     // (tokens, experts) of the router
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
  uint32_t* attention_tickets;
  uint32_t* counters;  // barrier, -, leaving, launches before this one
  Tagged tagged;
  int in_flight;     // units of a block
  long long* times;  // (blocks, 16) sums of cycles; or null
};

constexpr int kStagedNumbers = 6 * 1408 + 2816 + kSegment;  // inner vectors of one token in shared memory

struct AttentionShared {
  __align__(16) bf16 query[kHeadRows][kHeadSize + 8];
  __align__(16) bf16 key[kHeadSize];
  __align__(16) bf16 value[kHeadSize];
  __align__(16) char values[kSubsplit * kValueRow];
  float scores[kHeadRows][kScoreStride];
  __align__(16) bf16 high[kHeadRows][kProbabilityStride];
  __align__(16) bf16 low[kHeadRows][kProbabilityStride];
  float top[kHeadRows][kSplit / kSubsplit];
  size_t place[kSplit / 16];  // byte offset of every sixteenth position
  bool last;
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
  uint64_t known;  // a phase for every layer whose routing is known
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
    } in;
    AttentionShared attention;
    PickScratch pick;
    bf16 staged[kColumns == 1 ? kStagedNumbers : 8];
  };
  union {
    float partials[kRoundTiles<kColumns> * kWarps * 16 * kColumns];
    float down[kDownUnits * 16 * kColumns];
  };
  Routed routed;
};

}  // namespace assay::cuda::fast::persistent
