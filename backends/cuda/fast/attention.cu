#include "backends/cuda/fast/attention_math.cuh"
#include "backends/cuda/fast/weight_stream.cuh"

namespace assay::cuda::fast {
namespace {

constexpr int kRow = kHeadSize * 2;             // bytes of a key or value
constexpr int kValueRow = kRow + 16;            // in shared memory: no bank conflicts
constexpr int kRows = 8;                        // query heads of a group, at most
constexpr int kScoreStride = kSplit + 4;        // floats
constexpr int kProbabilityStride = kSplit + 8;  // bf16

struct Shared {
  __align__(16) char values[kSplit * kValueRow];
  __align__(16) bf16 query[kRows][kHeadSize + 8];
  __align__(16) bf16 key[kHeadSize];
  float scores[kRows][kScoreStride];
  __align__(16) bf16 high[kRows][kProbabilityStride];
  __align__(16) bf16 low[kRows][kProbabilityStride];
  float top[kRows][kSplit / kSubsplit];  // running maximum
  bool last;
};

// Grid (splits, groups, tokens). Keys go from memory to registers, values to shared memory, before the wait: those of
// older positions were written by earlier steps. The block of the last split adds the new position itself.
__global__ void __launch_bounds__(kThreads, 2) attention_kernel(const AttentionArgs args) {
  extern __shared__ __align__(128) char shared_memory[];
  Shared& s = *reinterpret_cast<Shared*>(shared_memory);
  const int token = blockIdx.z;
  const int group = blockIdx.y;
  const int split = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int g = lane / 4;
  const int c = lane % 4;
  const int position = __ldcg(args.positions + token);
  const int begin = split * kSplit;
  if (begin > position) return;
  const int count = min(kSplit, position + 1 - begin);  // the new one included
  const bool newest = begin + count == position + 1;
  const int old = newest ? count - 1 : count;
  const CacheView& cache = args.cache;
  const int32_t* table = cache.blocks + cache.tables[token];
  const auto place = [&](int at) {  // byte offset of a position's key or value
    const int block = at / cache.block_size;
    return ((static_cast<size_t>(table[block]) * args.groups + group) * cache.block_size +
            (at - block * cache.block_size)) *
           kRow;
  };

  // Warp w has positions 8 (w + 8 j) + g of the split.
  constexpr int kTiles = kSplit / 8 / kWarps;
  uint4 keys[kTiles][4];
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    const int at = 8 * (warp + kWarps * j) + g;
    const char* from = at < old ? static_cast<const char*>(cache.keys) + place(begin + at) + c * 16 : nullptr;
#pragma unroll
    for (int i = 0; i < 4; ++i) keys[j][i] = at < old ? load_global(from + 64 * i) : make_uint4(0, 0, 0, 0);
  }
  const int padded = (count + 15) / 16 * 16;
  for (int i = threadIdx.x; i < padded * 16; i += kThreads) {
    const int at = i / 16;
    char* to = s.values + at * kValueRow + i % 16 * 16;
    if (at < old) {
      copy_async(shared_address(to), static_cast<const char*>(cache.values) + place(begin + at) + i % 16 * 16);
    } else {
      *reinterpret_cast<uint4*>(to) = make_uint4(0, 0, 0, 0);
    }
  }
  copy_commit();
  // Row r of the group's queries, and its key and value, belong to warp r, r + 1, ...: lane has channels 2 lane and
  // 2 lane + 1 of both halves.
  const float* turns = args.rotary + static_cast<size_t>(position) * kHeadSize + 2 * lane;
  const float2 cosine = *reinterpret_cast<const float2*>(turns);
  const float2 sine = *reinterpret_cast<const float2*>(turns + kHeadSize / 2);
  __syncthreads();
  wait_for_kernel_before();
  start_kernel_after();

  const int per_group = args.heads_per_group;
  const float* rows = args.qkv + (static_cast<size_t>(token) * args.groups + group) * (per_group + 2) * kHeadSize;
  for (int r = warp; r < per_group + (newest ? 2 : 0); r += kWarps) {
    const float2 front = __ldcg(reinterpret_cast<const float2*>(rows + r * kHeadSize) + lane);
    const float2 back = __ldcg(reinterpret_cast<const float2*>(rows + r * kHeadSize + kHeadSize / 2) + lane);
    float2 a = make_float2(front.x, back.x);
    float2 b = make_float2(front.y, back.y);
    if (r <= per_group) {
      a = rotate(a, cosine.x, sine.x);
      b = rotate(b, cosine.y, sine.y);
    }
    const uint32_t first = pack(__float2bfloat16_rn(a.x), __float2bfloat16_rn(b.x));
    const uint32_t second = pack(__float2bfloat16_rn(a.y), __float2bfloat16_rn(b.y));
    bf16* to = r < per_group    ? s.query[r]
               : r == per_group ? s.key
                                : reinterpret_cast<bf16*>(s.values + old * kValueRow);
    reinterpret_cast<uint32_t*>(to)[lane] = first;
    reinterpret_cast<uint32_t*>(to)[lane + 32] = second;
    if (r >= per_group) {
      char* stored = static_cast<char*>(r == per_group ? cache.keys : cache.values) + place(position);
      reinterpret_cast<uint32_t*>(stored)[lane] = first;
      reinterpret_cast<uint32_t*>(stored)[lane + 32] = second;
    }
  }
  __syncthreads();

  uint4 query[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    query[i] = g < per_group ? *reinterpret_cast<const uint4*>(&s.query[g][32 * i + 8 * c]) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    const int first = 8 * (warp + kWarps * j);
    if (first < count) {
      float score[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      const bool here = newest && first + g == old;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 k = here ? *reinterpret_cast<const uint4*>(&s.key[32 * i + 8 * c]) : keys[j][i];
        mma(score, make_uint4(query[i].x, 0, query[i].y, 0), k.x, k.y);
        mma(score, make_uint4(query[i].z, 0, query[i].w, 0), k.z, k.w);
      }
      if (g < per_group) *reinterpret_cast<float2*>(&s.scores[g][first + 2 * c]) = make_float2(score[0], score[1]);
    }
  }
  copy_wait<0>();
  __syncthreads();

  for (int r = warp; r < per_group; r += kWarps) {
    float top = -INFINITY;
#pragma unroll
    for (int block = 0; block < kSplit / kSubsplit; ++block) {
      const int at = block * kSubsplit + 2 * lane;
      if (block * kSubsplit < count) {
        float2 score = make_float2(-INFINITY, -INFINITY);
        if (at < count) score.x = s.scores[r][at];
        if (at + 1 < count) score.y = s.scores[r][at + 1];
        float larger = fmaxf(score.x, score.y);
#pragma unroll
        for (int d = 16; d > 0; d /= 2) larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, d));
        top = fmaxf(top, larger);
        uint32_t high, low;
        split_probabilities(at < count ? probability(score.x, top) : 0.0f,
                            at + 1 < count ? probability(score.y, top) : 0.0f, high, low);
        *reinterpret_cast<uint32_t*>(&s.high[r][at]) = high;
        *reinterpret_cast<uint32_t*>(&s.low[r][at]) = low;
      }
      if (lane == 0) s.top[r][block] = top;
    }
  }
  __syncthreads();

  // Warp w has channels 16 w .. 16 w + 15.
  float sums[2][4] = {};
  float ones[4] = {};
  const uint32_t matrix = shared_address(s.values) + (lane % 16) * kValueRow + warp * 32 + lane / 16 * 16;
#pragma unroll 4
  for (int step = 0; step < padded / 16; ++step) {
    if (step % 4 == 0 && step > 0 && g < per_group) {
      const float by = rescale(s.top[g][step / 4 - 1], s.top[g][step / 4]);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sums[0][i] = __fmul_rn(sums[0][i], by);
        sums[1][i] = __fmul_rn(sums[1][i], by);
        ones[i] = __fmul_rn(ones[i], by);
      }
    }
    uint4 high = make_uint4(0, 0, 0, 0);
    uint4 low = make_uint4(0, 0, 0, 0);
    if (g < per_group) {
      high.x = *reinterpret_cast<const uint32_t*>(&s.high[g][16 * step + 2 * c]);
      high.z = *reinterpret_cast<const uint32_t*>(&s.high[g][16 * step + 8 + 2 * c]);
      low.x = *reinterpret_cast<const uint32_t*>(&s.low[g][16 * step + 2 * c]);
      low.z = *reinterpret_cast<const uint32_t*>(&s.low[g][16 * step + 8 + 2 * c]);
    }
    const uint4 v = load_matrices_transposed(matrix + step * 16 * kValueRow);
    mma(sums[0], high, v.x, v.y);
    mma(sums[0], low, v.x, v.y);
    mma(sums[1], high, v.z, v.w);
    mma(sums[1], low, v.z, v.w);
    mma(ones, high, kOnes, kOnes);
    mma(ones, low, kOnes, kOnes);
  }

  const int splits = position / kSplit + 1;
  const int heads = args.groups * per_group;
  const int head = group * per_group + g;
  bf16* y = static_cast<bf16*>(args.y) + (static_cast<size_t>(token) * heads + head) * kHeadSize;
  if (splits == 1) {
    if (g < per_group) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int channel = 16 * warp + 8 * i + 2 * c;
        *reinterpret_cast<uint32_t*>(y + operand_place(channel)) = pack(
            __float2bfloat16_rn(attended(sums[i][0], ones[0])), __float2bfloat16_rn(attended(sums[i][1], ones[0])));
      }
    }
    return;
  }
  if (g < per_group) {
    SplitResult& mine = args.results[(static_cast<size_t>(token) * heads + head) * args.splits + split];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      *reinterpret_cast<float2*>(&mine.values[16 * warp + 8 * i + 2 * c]) = make_float2(sums[i][0], sums[i][1]);
    }
    if (warp == 0 && c == 0) {
      mine.top = s.top[g][(count - 1) / kSubsplit];
      mine.sum = ones[0];
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t* ticket = args.tickets + token * args.groups + group;
    s.last = add_acquire_release(ticket, 1) + 1 == static_cast<uint32_t>(splits);
    if (s.last) *ticket = 0;
  }
  __syncthreads();
  if (!s.last) return;
  __threadfence();
  for (int i = threadIdx.x; i < per_group * kHeadSize; i += kThreads) {
    const int channel = i % kHeadSize;
    const size_t at = static_cast<size_t>(token) * heads + group * per_group + i / kHeadSize;
    const SplitResult* from = args.results + at * args.splits;
    float top = __ldcg(&from[0].top);
    float sum = __ldcg(&from[0].sum);
    float value = __ldcg(&from[0].values[channel]);
#pragma unroll 4
    for (int k = 1; k < splits; ++k) {
      const float its_top = __ldcg(&from[k].top);
      const float its_sum = __ldcg(&from[k].sum);
      const float its_value = __ldcg(&from[k].values[channel]);
      const float larger = fmaxf(top, its_top);
      const float by = rescale(top, larger);
      const float its_by = rescale(its_top, larger);
      sum = __fmaf_rn(its_sum, its_by, __fmul_rn(sum, by));
      value = __fmaf_rn(its_value, its_by, __fmul_rn(value, by));
      top = larger;
    }
    static_cast<bf16*>(args.y)[at * kHeadSize + operand_place(channel)] = __float2bfloat16_rn(attended(value, sum));
  }
}

}  // namespace

cudaError_t attention(const AttentionArgs& args, const Launch& how) {
  const cudaError_t error =
      cudaFuncSetAttribute(reinterpret_cast<const void*>(attention_kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(sizeof(Shared)));
  if (error != cudaSuccess) return error;
  return launch(how, attention_kernel, dim3(args.splits, args.groups, args.tokens), kThreads, sizeof(Shared), args);
}

}  // namespace assay::cuda::fast
