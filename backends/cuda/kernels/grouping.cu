#include <algorithm>

#include "backends/cuda/kernels/dependent_launch.cuh"
#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/routing.h"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 1024;

// The lanes whose `key` (of `bits` bits) is the lane's. Many times faster than __match_any_sync for few bits.
__device__ unsigned lanes_alike(int key, int bits) {
  unsigned alike = kWholeWarp;
  for (int b = 0; b < bits; ++b) {
    const bool set = (key >> b & 1) != 0;
    const unsigned all = __ballot_sync(kWholeWarp, set);
    alike &= set ? all : ~all;
  }
  return alike;
}

// Calls visit(slot, expert, peers) of a run of slots in steps of 32, ascending: peers are the lanes whose slots have
// the same expert; slots behind the run have expert `experts`, below 2^bits.
template <class Visit>
__device__ void visit_slots(const GroupArgs& a, int begin, int end, int bits, const Visit& visit) {
  constexpr int kAhead = 8;  // steps whose loads are under way together
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int first = begin; first < end; first += 32 * kAhead) {
    int expert[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int s = first + i * 32 + lane;
      expert[i] = s < end ? a.chosen[s] : a.experts;
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (first + i * 32 >= end) break;
      visit(first + i * 32 + lane, expert[i], lanes_alike(expert[i], bits));
      __syncwarp();
    }
  }
}

// Sets begin[e] and tile[e] to the slots and tiles before expert e, up to e = experts, from each expert's slots in
// begin[e]. One warp.
__device__ void scan_experts(int experts, int32_t* begin, int32_t* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int slots_before = 0;
  int tiles_before = 0;
  for (int first = 0; first <= experts; first += 32) {
    const int e = first + lane;
    const int slots = e < experts ? begin[e] : 0;
    const int tiles = (slots + kTileTokens - 1) / kTileTokens;
    int slots_behind = slots;
    int tiles_behind = tiles;
    for (int step = 1; step < 32; step *= 2) {
      const int other_slots = __shfl_up_sync(kWholeWarp, slots_behind, step);
      const int other_tiles = __shfl_up_sync(kWholeWarp, tiles_behind, step);
      slots_behind += lane >= step ? other_slots : 0;
      tiles_behind += lane >= step ? other_tiles : 0;
    }
    if (e <= experts) {
      begin[e] = slots_before + slots_behind - slots;
      tile[e] = tiles_before + tiles_behind - tiles;
    }
    slots_before += __shfl_sync(kWholeWarp, slots_behind, 31);
    tiles_before += __shfl_sync(kWholeWarp, tiles_behind, 31);
  }
}

// Block b places the b-th share of the slots: it counts the slots of every expert, and those before its share; each of
// `warps` warps then takes a run of the share, counts every expert's in it, which gives where the run's begin, and puts
// its slots there in ascending order.
__global__ void __launch_bounds__(kThreads) group_kernel(GroupArgs a, Groups groups, int warps) {
  extern __shared__ int32_t places[];  // (warps, experts): slots of the run, then where the next one goes
  int32_t* const begin = places + warps * a.experts;  // (experts + 1)
  int32_t* const tile = begin + a.experts + 1;        // (experts + 1)
  int32_t* const before = tile + a.experts + 1;       // (experts)
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int blocks = static_cast<int>(gridDim.x);
  const int share = (a.slots + blocks - 1) / blocks;
  const int share_begin = min(static_cast<int>(blockIdx.x) * share, a.slots);
  const int share_end = min(share_begin + share, a.slots);
  const int run = ((share + warps - 1) / warps + 31) / 32 * 32;
  const int first = warp < warps ? min(share_begin + warp * run, share_end) : share_end;
  const int end = min(first + run, share_end);
  const int bits = 32 - __clz(a.experts);
  start_kernel_after();
  int32_t* const mine = places + warp * a.experts;
  for (int i = thread; i < warps * a.experts + 3 * a.experts + 2; i += kThreads) places[i] = 0;
  __syncthreads();
  for (int s = thread; s < a.slots; s += kThreads) atomicAdd((s < share_begin ? before : begin) + a.chosen[s], 1);
  visit_slots(a, first, end, bits, [&](int, int expert, unsigned peers) {
    if (expert < a.experts && lane == __ffs(static_cast<int>(peers)) - 1) mine[expert] += __popc(peers);
  });
  __syncthreads();
  for (int e = thread; e < a.experts; e += kThreads) {
    int count = before[e];
    begin[e] += count;
    for (int w = 0; w < warps; ++w) {
      const int of_warp = places[w * a.experts + e];
      places[w * a.experts + e] = count;
      count += of_warp;
    }
  }
  __syncthreads();
  if (warp == 0) scan_experts(a.experts, begin, tile);
  __syncthreads();
  auto* order = const_cast<int32_t*>(groups.order);
  visit_slots(a, first, end, bits, [&](int slot, int expert, unsigned peers) {
    const int rank = __popc(peers & ((1u << lane) - 1u));
    const int place = expert < a.experts ? mine[expert] : 0;
    __syncwarp();
    if (expert == a.experts) return;
    order[begin[expert] + place + rank] = slot;
    if (rank == 0) mine[expert] = place + __popc(peers);
  });
  if (blockIdx.x > 0) return;
  for (int e = thread; e <= a.experts; e += kThreads) const_cast<int32_t*>(groups.begin)[e] = begin[e];
  if (thread == 0) *const_cast<int32_t*>(groups.tiles) = tile[a.experts];
  for (int e = warp; e < a.experts; e += kThreads / 32) {
    for (int i = lane; i < tile[e + 1] - tile[e]; i += 32) {
      const_cast<int32_t*>(groups.tile_expert)[tile[e] + i] = e;
      const_cast<int32_t*>(groups.tile_begin)[tile[e] + i] = begin[e] + i * kTileTokens;
      const_cast<int32_t*>(groups.tile_count)[tile[e] + i] =
          min(kTileTokens, begin[e + 1] - begin[e] - i * kTileTokens);
    }
  }
}

}  // namespace

Groups group_slots(const GroupArgs& args, cudaStream_t stream) {
  Groups groups;
  groups.most_tiles = most_tiles(args.slots, args.experts);
  groups.order = args.storage;
  groups.tile_expert = groups.order + args.slots;
  groups.tile_begin = groups.tile_expert + groups.most_tiles;
  groups.tile_count = groups.tile_begin + groups.most_tiles;
  groups.tiles = groups.tile_count + groups.most_tiles;
  groups.begin = groups.tiles + 1;
  groups.experts = args.experts;
  constexpr int kMostInts = (48 << 10) / 4;  // of shared memory
  constexpr int kShare = 1024;               // slots
  constexpr int kMostBlocks = 32;
  const int others = 3 * args.experts + 2;
  const int warps = std::clamp((kMostInts - others) / args.experts, 1, kThreads / 32);
  const auto shared = static_cast<size_t>(warps * args.experts + others) * sizeof(int32_t);
  const auto blocks = static_cast<unsigned>(std::clamp((args.slots + kShare - 1) / kShare, 1, kMostBlocks));
  group_kernel<<<blocks, kThreads, shared, stream>>>(args, groups, warps);
  check_launch("group_slots");
  return groups;
}

}  // namespace assay::cuda
