// What the warpgroups of attend_hopper.cu that multiply do.
#pragma once

#include "backends/cuda/kernels/attention_bf16.cuh"
#include "backends/cuda/kernels/hopper/attention_rows.cuh"
#include "backends/cuda/kernels/hopper/attention_tiles.cuh"
#include "backends/cuda/kernels/hopper/wgmma_attention.cuh"

namespace assay::cuda::hopper_attention {

// Results of wgmma may be read from here on.
template <int kCount>
__device__ void settle(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __noinline__ inline uint32_t attended_slowly(float first, float second, float sum) {
  return two_bf16(attended(first, sum), attended(second, sum));
}

// Results of one query: what attended() gives. Dividing by its sum, with the reciprocal at hand: a quotient that two
// remainders have corrected is the rounded one where nothing leaves the range of normal numbers.
class Quotient {
 public:
  __device__ explicit Quotient(float sum) : sum_(sum), inverse_(1.0f / sum), usual_(sum > 0x1p-10f && sum < 0x1p60f) {}
  __device__ uint32_t attended(float first, float second) const {
    if (!usual_ || !usual(first) || !usual(second)) return attended_slowly(first, second, sum_);
    return two_bf16(__fadd_rn(divided(first), 0.0f), __fadd_rn(divided(second), 0.0f));
  }

 private:
  __device__ static bool usual(float value) { return fabsf(value) > 0x1p-60f && fabsf(value) < 0x1p60f; }
  __device__ float divided(float value) const {
    float q = __fmul_rn(value, inverse_);
    q = __fmaf_rn(__fmaf_rn(-sum_, q, value), inverse_, q);
    return __fmaf_rn(__fmaf_rn(-sum_, q, value), inverse_, q);
  }

  float sum_;
  float inverse_;
  bool usual_;
};

// A warpgroup's 64 queries; a thread has two rows, those of mma's d. What is cheap to find again is no member:
// registers are what is short here.
template <class Block>
class Queries {
 public:
  __device__ Queries(const AttendArgs& a, uint32_t memory) : a_(a), memory_(memory), scale_(kLog2E * a.scale) {}

  __device__ void attend() {
    load();
    const Work work = work_of_block<Block>(a_);
    const int* positions = a_.tokens.position + work.first;
    const int begin = warpgroup() * kGroupRows;
    const int tiles = positions[min(begin + kGroupRows, work.count) - 1] / kTilePositions + 1;
    const int whole = min((positions[begin] + 1) / kTilePositions, tiles - 1);
    int tile = 0;
    if (whole > 0) {
      weigh_first_tile();
      for (; tile + 2 < whole; tile += 2) {
        take_whole_tile(tile, weights_[0], weights_[1]);
        take_whole_tile(tile + 1, weights_[1], weights_[0]);
      }
      if (tile + 1 < whole) {
        take_whole_tile(tile++, weights_[0], weights_[1]);
        weights_[0] = weights_[1];
      }
      multiply_tile(tile, weights_[0]);
      wgmma_wait<0>();
      finish_tile<true>(tile++, weights_[0], top_);
    }
    for (; tile < tiles; ++tile) take_last_tile(tile, tile + 1 == tiles);
    store();
    for (const int all = positions[work.count - 1] / kTilePositions + 1; tile < all; ++tile) {
      skip(keys(tile));  // for the other warpgroup
      skip(values(tile));
    }
  }

 private:
  static constexpr int kChannels = Block::kChannels;
  static constexpr int kSums = kChannels / 2;  // numbers of a thread: two rows, two of every eight channels
  static constexpr int kScores = kTilePositions / 2;
  static constexpr int kSteps = kTilePositions / 16;
  // The two parts of p of a tile, as mma's A operands.
  struct Weights {
    uint4 high[kSteps];
    uint4 low[kSteps];
  };

  __device__ static int warpgroup() { return static_cast<int>(threadIdx.x) / kWarpgroup - 1; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % 4 * 2; }  // the first of mma's d
  // Row r (0, 1) of the thread within the bundle, and its position, -1 where there is no such token.
  __device__ static int row(int r) {
    return (static_cast<int>(threadIdx.x) - kWarpgroup) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * r;
  }
  __device__ int position(int r) const {
    const Work work = work_of_block<Block>(a_);
    return row(r) < work.count ? a_.tokens.position[work.first + row(r)] : -1;
  }
  __device__ uint32_t queries() const { return memory_ + static_cast<uint32_t>(warpgroup()) * kGroupRows * kLine; }
  __device__ Slot<Block> keys(int tile) const { return {memory_, Half::kKeys, tile}; }
  __device__ Slot<Block> values(int tile) const { return {memory_, Half::kValues, tile}; }
  __device__ static void skip(const Slot<Block>& slot) {
    slot.wait_full();
    slot.release();
  }

  __device__ static void barrier() {
    asm volatile("bar.sync %0, %1;" ::"r"(warpgroup() + 1), "n"(kWarpgroup) : "memory");
  }
  __device__ static bool any(bool mine) {
    uint32_t all;
    asm volatile(
        "{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tbarrier.cta.red.or.pred q, %2, %3, p;\n\t"
        "selp.u32 %0, 1, 0, q;\n\t}"
        : "=r"(all)
        : "r"(static_cast<uint32_t>(mine)), "r"(warpgroup() + 1), "n"(kWarpgroup)
        : "memory");
    return all != 0;
  }

  // The queries, in the order of keys, to shared memory.
  __device__ void load() const {
    const Work work = work_of_block<Block>(a_);
    const int heads = a_.cache.groups * a_.per_group;
    const auto* all = static_cast<const Bfloat16*>(a_.queries);
    for (auto i = threadIdx.x % kWarpgroup; i < kGroupRows * kChannels / 8; i += kWarpgroup) {
      const uint32_t row = i / (kChannels / 8);
      const uint32_t eight = i % (kChannels / 8);
      const int token = warpgroup() * kGroupRows + static_cast<int>(row);
      uint4 q = make_uint4(0, 0, 0, 0);
      if (token < work.count) {
        const int64_t at = (int64_t{work.first + token} * heads + work.head) * kChannels + 8 * eight;
        q = *reinterpret_cast<const uint4*>(all + at);
      }
      put(row, score_place(2 * eight), q.x, q.y);
      put(row, score_place(2 * eight + 1), q.z, q.w);
    }
    publish_to_wgmma();
    barrier();
  }
  __device__ void put(uint32_t row, uint32_t place, uint32_t first, uint32_t second) const {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(queries() + place / kLine * Block::kHalfQueries +
                                                          swizzled(row, place % kLine)),
                 "r"(first), "r"(second)
                 : "memory");
  }

  __device__ void weigh_first_tile() {
    ask_for_scores(0);
    wgmma_wait<0>();
    take_scores(0);
    float by[2];
    raise_top(true, by);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) weigh_scores(step, weights_[0]);
  }

  // The products of a tile that every query sees, while the scores and then the weights of the next one, of the same
  // kind, are computed.
  __device__ void take_whole_tile(int tile, const Weights& weights, Weights& next) {
    ask_for_scores(tile + 1);
    multiply_tile(tile, weights);
    wgmma_wait<1>();
    take_scores(tile + 1);
    const float top[2] = {top_[0], top_[1]};
    float by[2];
    raise_top((tile + 1) % kSplitTiles == 0, by);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) weigh_scores(step, next);
    wgmma_wait<0>();
    finish_tile<true>(tile, weights, top);
    scale_sums(by);
  }

  // A tile that some queries do not see, or see in part, or the last one.
  __device__ void take_last_tile(int tile, bool last) {
    const bool starts = tile % kSplitTiles == 0;
    Weights& weights = weights_[0];
    ask_for_scores(tile);
    wgmma_wait<0>();
    take_scores(tile);
    hide(tile * kTilePositions);
    float by[2];
    raise_top(starts, by);
    scale_sums(by);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) weigh_scores(step, weights);
    values(tile).wait_full();
    publish_to_wgmma();
    if (any(unbounded_values(values(tile).data()))) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) multiply_row_by_row(tile, step, weights);
    } else {
      multiply_tile(tile, weights);
      wgmma_wait<0>();
    }
    finish_tile<false>(tile, weights, top_);
    if (last && (tile + 1) % kSplitTiles != 0) merge<false>(tile / kSplitTiles, top_);
  }

  // The weights of a tile times its values, and times ones.
  __device__ void multiply_tile(int tile, const Weights& weights) {
    const bool starts = tile % kSplitTiles == 0;
    values(tile).wait_full();
    publish_to_wgmma();
    const uint64_t all = value_descriptor(values(tile).data(), kHalfTile);
    const uint64_t ones = ones_descriptor(memory_ + Block::kOnesTile);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint64_t its = further(all, static_cast<uint32_t>(step) * 16 * kLine);
      multiply(sums_, weights.high[step], its, !starts || step > 0);
      multiply(sums_, weights.low[step], its, true);
      multiply(ones_, weights.high[step], ones, !starts || step > 0);
      multiply(ones_, weights.low[step], ones, true);
    }
    wgmma_commit();
  }

  // After the products; top: the maximum that the weights belong to.
  template <bool kWhole>
  __device__ void finish_tile(int tile, const Weights& weights, const float (&top)[2]) {
    settle(sums_);
    settle(ones_);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {  // wgmma read them until here
      for (const uint4& w : {weights.high[step], weights.low[step]}) {
        asm volatile("" ::"r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w));
      }
    }
    values(tile).release();
    if ((tile + 1) % kSplitTiles == 0) merge<kWhole>(tile / kSplitTiles, top);
  }

  __device__ void ask_for_scores(int tile) {
    keys(tile).wait_full();
    publish_to_wgmma();
    const uint64_t queries = descriptor(this->queries());
    const uint64_t its = descriptor(keys(tile).data());
    wgmma_fence();
#pragma unroll
    for (uint32_t step = 0; step < kChannels / 16; ++step) {
      const uint32_t at = step % 4 * 32;
      multiply(scores_, further(queries, step / 4 * Block::kHalfQueries + at), further(its, step / 4 * kHalfTile + at),
               step > 0);
    }
    wgmma_commit();
  }
  __device__ void take_scores(int tile) {
    settle(scores_);
    keys(tile).release();
  }
  __device__ void hide(int begin) {
    const int last[2] = {position(0), position(1)};
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const int at = begin + i / 4 * 8 + column() + i % 2;
      if (at > last[i / 2 % 2]) scores_[i] = -INFINITY;
    }
  }

  // The running maximum takes the scores in; by: what the sums so far are to be scaled by.
  __device__ void raise_top(bool starts, float (&by)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float larger[4];
#pragma unroll
      for (int i = 0; i < kScores / 2; ++i) {
        const float score = scores_[i / 2 * 4 + 2 * r + i % 2];
        larger[i % 4] = i < 4 ? score : fmaxf(larger[i % 4], score);
      }
      larger[0] = fmaxf(fmaxf(larger[0], larger[1]), fmaxf(larger[2], larger[3]));
      larger[0] = fmaxf(larger[0], __shfl_xor_sync(kWholeWarp, larger[0], 1));
      larger[0] = fmaxf(larger[0], __shfl_xor_sync(kWholeWarp, larger[0], 2));
      const float before = starts ? -INFINITY : top_[r];
      top_[r] = fmaxf(before, larger[0]);
      by[r] = starts ? 1.0f : rescale(before, top_[r], scale_);
    }
  }
  __device__ void scale_sums(const float (&by)[2]) {
    if (!__any_sync(kWholeWarp, by[0] != 1.0f || by[1] != 1.0f)) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      ones_[2 * r] = __fmul_rn(ones_[2 * r], by[r]);
#pragma unroll
      for (int i = 0; i < kSums / 2; ++i) {
        float& sum = sums_[i / 2 * 4 + 2 * r + i % 2];
        sum = __fmul_rn(sum, by[r]);
      }
    }
  }

  // Scores of 16 positions become the two parts of p.
  __device__ void weigh_scores(int step, Weights& weights) const {
    const float* s = scores_ + 8 * step;
    uint4& high = weights.high[step];
    uint4& low = weights.low[step];
    split_probabilities(p(s[0], 0), p(s[1], 0), high.x, low.x);
    split_probabilities(p(s[2], 1), p(s[3], 1), high.y, low.y);
    split_probabilities(p(s[4], 0), p(s[5], 0), high.z, low.z);
    split_probabilities(p(s[6], 1), p(s[7], 1), high.w, low.w);
  }
  __device__ float p(float score, int r) const { return probability(score, top_[r], scale_); }

  // Whether the thread's part of a tile holds an infinity or a NaN.
  __device__ static bool unbounded_values(uint32_t tile) {
    uint32_t largest = 0;
#pragma unroll
    for (uint32_t at = 0; at < Block::kTile; at += kWarpgroup * 16) {
      const uint4 v = load_shared(tile + at + threadIdx.x % kWarpgroup * 16);
      for (const uint32_t two : {v.x, v.y, v.z, v.w}) largest = __vmaxu2(largest, two & 0x7fff7fffu);
    }
    return unbounded(largest);
  }

  // As multiply_tile() for 16 positions, but no row meets a value that it does not see.
  __device__ void multiply_row_by_row(int tile, int step, const Weights& weights) {
    const bool starts = tile % kSplitTiles == 0 && step == 0;
    RowByRow<kChannels> work;
    work.values = values(tile).data() + static_cast<uint32_t>(step) * 16 * kLine;
    work.begin = tile * kTilePositions + step * 16;
    work.high = weights.high[step];
    work.low = weights.low[step];
#pragma unroll
    for (int r = 0; r < 2; ++r) work.position[r] = position(r);
#pragma unroll
    for (int i = 0; i < kSums; ++i) work.sums[i] = starts ? 0.0f : sums_[i];
    multiply_rows(work);
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums_[i] = work.sums[i];
    if (starts) ones_[0] = ones_[2] = 0;
    mma(ones_, weights.high[step], kOnes, kOnes);
    mma(ones_, weights.low[step], kOnes, kOnes);
  }

  // The thread's four sums of eight channels from 8 n on, of the splits so far.
  __device__ uint32_t sums_so_far(int n) const {
    return memory_ + Block::kSumsSoFar +
           (static_cast<uint32_t>(n) * (Block::kThreads - kWarpgroup) + threadIdx.x - kWarpgroup) * 16;
  }

  // Puts the sums of a split behind those before it; kWhole: every query sees it.
  template <bool kWhole>
  __device__ void merge(int split, const float (&top)[2]) {
    bool seen[2];
    SplitMerge both[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      seen[r] = split == 0 || kWhole || position(r) >= split * kSplit;
      both[r] = merge_splits(all_top_[r], top[r], scale_);
      if (!seen[r]) continue;
      all_ones_[r] = split == 0 ? ones_[2 * r] : merged(all_ones_[r], ones_[2 * r], both[r]);
      all_top_[r] = split == 0 ? top[r] : both[r].top;
    }
#pragma unroll
    for (int n = 0; n < kChannels / 8; ++n) {
      float sums[4];
      if (split > 0) {
        const uint4 so_far = load_shared(sums_so_far(n));
        const uint32_t words[4] = {so_far.x, so_far.y, so_far.z, so_far.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float before = __uint_as_float(words[i]);
          sums[i] = seen[i / 2] ? merged(before, sums_[4 * n + i], both[i / 2]) : before;
        }
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i] = sums_[4 * n + i];
      }
      asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(sums_so_far(n)), "f"(sums[0]), "f"(sums[1]),
                   "f"(sums[2]), "f"(sums[3])
                   : "memory");
    }
  }

  __device__ void store() const {
    const Work work = work_of_block<Block>(a_);
    auto* y = static_cast<Bfloat16*>(a_.y.data) + work.head * kChannels + column();
    const Quotient of[2] = {Quotient(all_ones_[0]), Quotient(all_ones_[1])};
#pragma unroll 4
    for (int n = 0; n < kChannels / 8; ++n) {
      const uint4 bits = load_shared(sums_so_far(n));
      const float sums[4] = {__uint_as_float(bits.x), __uint_as_float(bits.y), __uint_as_float(bits.z),
                             __uint_as_float(bits.w)};
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (row(r) >= work.count) continue;
        *reinterpret_cast<uint32_t*>(y + int64_t{work.first + row(r)} * a_.y.stride + 8 * n) =
            of[r].attended(sums[2 * r], sums[2 * r + 1]);
      }
    }
  }

  const AttendArgs& a_;
  uint32_t memory_;
  float scale_;
  float scores_[kScores];
  Weights weights_[2];  // of two tiles in turn
  float sums_[kSums];   // of this split
  float ones_[4] = {};
  float top_[2];
  float all_ones_[2] = {};  // of the splits before it
  float all_top_[2] = {};
};

}  // namespace assay::cuda::hopper_attention
