// The two ends of the ring: the warp that asks for the block's units in the order of their use, and the multiplication
// of one.
#pragma once

#include "backends/cuda/fast/persistent_shared.cuh"

namespace assay::cuda::fast::persistent {

template <int kUnits>
__device__ inline uint32_t ring_unit(Ring<kUnits>& ring, int sequence) {
  return shared_address(ring.units[sequence % kUnits]);
}
template <int kUnits>
__device__ inline void wait_for_unit(Ring<kUnits>& ring, int sequence) {
  barrier_wait(shared_address(&ring.full[sequence % kUnits]), sequence / kUnits % 2);
}
template <int kUnits>
__device__ inline void release_unit(Ring<kUnits>& ring, int sequence) {
  barrier_arrive(shared_address(&ring.empty[sequence % kUnits]));
}

template <int kUnits>
__device__ inline void multiply_unit(Ring<kUnits>& ring, int sequence, const uint4 (&x)[2 * kStages], float (&sum)[4],
                                     int tiles = kSegment / 16) {
  wait_for_unit(ring, sequence);
  const uint32_t from = ring_unit(ring, sequence) + threadIdx.x % 32 * 16;
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    uint4 tile[kStageTiles];
#pragma unroll
    for (int i = 0; i < kStageTiles; ++i) tile[i] = load_shared(from + stage * kStageBytes + i * 512);
    if (stage * kStageTiles < tiles) multiply(sum, tile, x[2 * stage], x[2 * stage + 1]);
  }
  __syncwarp();
  if (threadIdx.x % 32 == 0) release_unit(ring, sequence);
}

// Asks for all units of a block in the order of their use.
template <int kUnits>
class Requests {
 public:
  __device__ Requests(const Args& args, const Routed& routed, const Tasks& tasks, Ring<kUnits>& ring)
      : a_(args),
        routed_(routed),
        tasks_(tasks),
        ring_(ring),
        turn_{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)},
        policy_(evict_first()) {}

  __device__ void run() {
    for (int layer = 0; layer < a_.layer_count; ++layer) {
      const LayerWeights& l = a_.layers[layer];
      const ExpertWeights& w = l.experts;
      tiles(l.qkv, turn_.qkv(), a_.groups * (a_.heads_per_group + 2) * (kHeadSize / 16));
      if (layer == 0) barrier_wait(shared_address(&ring_.attended), 0);
      for (int n = 0; n < tasks_.count; ++n) {
        keys_or_values(static_cast<const char*>(a_.cache.keys) + layer * a_.layer_bytes, tasks_.task[n]);
        keys_or_values(static_cast<const char*>(a_.cache.values) + layer * a_.layer_bytes, tasks_.task[n]);
      }
      const bool strip = turn_.strip() < kHidden / 16;
      if (strip) tiles(l.projection, turn_.strip(), turn_.strip() + 1);
      tiles(w.router, turn_.router(), w.experts / 16);
      tiles(w.shared_fc1, turn_.shared(), w.shared_width / 8);
      if (w.experts > 0) {
        barrier_wait(shared_address(&ring_.known), routings_++ % 2);
        routed(w, strip);
      }
      for (int segment = 0; strip && segment < segments(w.shared_width); ++segment) {
        request(unit_of(w.shared_fc2, turn_.strip(), segment, w.shared_width));
      }
    }
    const int all = a_.vocabulary / 16;
    for (int first = turn_.block * kWarps; first < all; first += turn_.grid * kWarps) {
      for (int segment = 0; segment < kHidden / kSegment; ++segment) {
        for (int warp = 0; warp < kWarps; ++warp) {
          request(first + warp < all ? unit_of(a_.output, first + warp, segment, kHidden) : Unit{});
        }
      }
    }
  }

 private:
  __device__ void tiles(const void* matrix, int first, int count) {
    for (int tile = first; tile < count; tile += turn_.grid) {
      for (int segment = 0; segment < kWarps; ++segment) request(unit_of(matrix, tile, segment, kHidden));
    }
  }
  __device__ void routed(const ExpertWeights& w, bool strip) {
    const int active = routed_.active_count;
    const int per_expert = w.width / 8;
    const size_t fc1_bytes = static_cast<size_t>(w.width) * kHidden * 4;
    for (int index = turn_.routed(); index < active * per_expert; index += turn_.grid) {
      const int slot = index / per_expert;
      const char* fc1 = static_cast<const char*>(w.fc1) + routed_.expert[slot] * fc1_bytes;
      for (int segment = 0; segment < kWarps; ++segment) {
        request(unit_of(fc1, index - slot * per_expert, segment, kHidden));
      }
    }
    for (int slot = 0; strip && slot < active; ++slot) {
      const char* fc2 = static_cast<const char*>(w.fc2) + routed_.expert[slot] * (fc1_bytes / 2);
      for (int segment = 0; segment < segments(w.width); ++segment) {
        request(unit_of(fc2, turn_.strip(), segment, w.width));
      }
    }
  }
  __device__ void keys_or_values(const char* layer, const Task& task) {
    constexpr int kRun = kUnitBytes / 2;
    for (int at = 0; at < task.count; at += kUnitPositions) {
      const char* first = layer + static_cast<size_t>(task.rows[at / 16]) * kKeyBytes;
      const bool two = at + 16 < task.count;
      const char* second = two ? layer + static_cast<size_t>(task.rows[at / 16 + 1]) * kKeyBytes : nullptr;
      if (second == first + kRun) {
        request(first, kUnitBytes, nullptr, 0);
      } else {
        request(first, kRun, second, two ? kRun : 0);
      }
    }
  }
  __device__ void request(const Unit& unit) { request(unit.tiles, unit.count * 512, nullptr, 0); }
  // A unit made of one or two runs of memory.
  __device__ void request(const char* first, int first_bytes, const char* second, int second_bytes) {
    const int place = sequence_ % kUnits;
    if (sequence_ >= kUnits) barrier_wait(shared_address(&ring_.empty[place]), (sequence_ / kUnits - 1) % 2);
    const int before = sequence_ - a_.in_flight;
    if (before >= 0) wait_for_unit(ring_, before);
    const uint32_t full = shared_address(&ring_.full[place]);
    const uint32_t to = shared_address(ring_.units[place]);
    barrier_expect(full, first_bytes + second_bytes);
    if (first_bytes > 0) copy_bulk(to, first, first_bytes, full, policy_);
    if (second_bytes > 0) copy_bulk(to + first_bytes, second, second_bytes, full, policy_);
    ++sequence_;
  }

  const Args& a_;
  const Routed& routed_;
  const Tasks& tasks_;
  Ring<kUnits>& ring_;
  Turn turn_;
  uint64_t policy_;
  int sequence_ = 0;
  int routings_ = 0;
};

}  // namespace assay::cuda::fast::persistent
