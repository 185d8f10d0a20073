// The two ends of the ring: the warp that requests all units of the block in order, and the multiplication of one.
#pragma once

#include "backends/cuda/fast/persistent_shared.cuh"

namespace assay::cuda::fast::persistent {

template <int kUnits>
__device__ inline void multiply_unit(Ring<kUnits>& ring, int sequence, const uint4 (&x)[2 * kStages], float (&sum)[4],
                                     int tiles = kSegment / 16) {
  const int place = sequence % kUnits;
  barrier_wait(shared_address(&ring.full[place]), sequence / kUnits % 2);
  const uint32_t from = shared_address(ring.units[place]) + threadIdx.x % 32 * 16;
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    uint4 tile[kStageTiles];
#pragma unroll
    for (int i = 0; i < kStageTiles; ++i) tile[i] = load_shared(from + stage * kStageBytes + i * 512);
    if (stage * kStageTiles < tiles) multiply(sum, tile, x[2 * stage], x[2 * stage + 1]);
  }
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&ring.empty[place]));
}

// What the requesting thread does: all units of the block, in order.
template <int kUnits>
__device__ inline void request_all(const Args& a, Ring<kUnits>& ring, const Routed& routed, Turn turn) {
  const uint64_t policy = evict_first();
  int sequence = 0;
  const auto request = [&](const Unit& unit) {
    const int place = sequence % kUnits;
    if (sequence >= kUnits) barrier_wait(shared_address(&ring.empty[place]), (sequence / kUnits - 1) % 2);
    const int before = sequence - a.in_flight;
    if (before >= 0) barrier_wait(shared_address(&ring.full[before % kUnits]), before / kUnits % 2);
    const uint32_t full = shared_address(&ring.full[place]);
    barrier_expect(full, unit.count * 512);
    if (unit.count > 0) copy_bulk(shared_address(ring.units[place]), unit.tiles, unit.count * 512, full, policy);
    ++sequence;
  };
  const auto request_tiles = [&](const void* matrix, int first, int tiles) {
    for (int tile = first; tile < tiles; tile += turn.grid) {
      for (int segment = 0; segment < kWarps; ++segment) request(unit_of(matrix, tile, segment, kHidden));
    }
  };
  int routings = 0;
  for (int layer = 0; layer < a.layer_count; ++layer) {
    const LayerWeights& l = a.layers[layer];
    const ExpertWeights& w = l.experts;
    const bool strip = turn.strip() < kHidden / 16;
    request_tiles(l.qkv, turn.qkv(), a.groups * (a.heads_per_group + 2) * (kHeadSize / 16));
    if (strip) {
      for (int segment = 0; segment < kWarps; ++segment) request(unit_of(l.projection, turn.strip(), segment, kHidden));
    }
    request_tiles(w.router, turn.router(), w.experts / 16);
    request_tiles(w.shared_fc1, turn.shared(), w.shared_width / 8);
    int active = 0;
    if (w.experts > 0) {
      barrier_wait(shared_address(&ring.known), routings++ % 2);
      active = routed.active_count;
    }
    const int per_expert = w.width / 8;
    const size_t fc1_bytes = static_cast<size_t>(w.width) * kHidden * 4;
    for (int index = turn.routed(); index < active * per_expert; index += turn.grid) {
      const int slot = index / per_expert;
      const char* fc1 = static_cast<const char*>(w.fc1) + routed.expert[slot] * fc1_bytes;
      for (int segment = 0; segment < kWarps; ++segment) {
        request(unit_of(fc1, index - slot * per_expert, segment, kHidden));
      }
    }
    if (!strip) continue;
    for (int slot = 0; slot < active; ++slot) {
      const char* fc2 = static_cast<const char*>(w.fc2) + routed.expert[slot] * (fc1_bytes / 2);
      for (int segment = 0; segment < segments(w.width); ++segment) {
        request(unit_of(fc2, turn.strip(), segment, w.width));
      }
    }
    for (int segment = 0; segment < segments(w.shared_width); ++segment) {
      request(unit_of(w.shared_fc2, turn.strip(), segment, w.shared_width));
    }
  }
  const int tiles = a.vocabulary / 16;
  for (int first = turn.block * kWarps; first < tiles; first += turn.grid * kWarps) {
    for (int segment = 0; segment < kHidden / kSegment; ++segment) {
      for (int warp = 0; warp < kWarps; ++warp) {
        request(first + warp < tiles ? unit_of(a.output, first + warp, segment, kHidden) : Unit{});
      }
    }
  }
}

}  // namespace assay::cuda::fast::persistent
