#include "backends/cuda/fast/attention_math.cuh"
#include "backends/cuda/fast/plain.h"

namespace assay::cuda::fast {
namespace {

__device__ bf16* row_of(const AttentionArgs& args, void* base, int token, int group, int at) {
  const CacheView& cache = args.cache;
  const int block = cache.blocks[cache.tables[token] + at / cache.block_size];
  return static_cast<bf16*>(base) +
         ((static_cast<size_t>(block) * args.groups + group) * cache.block_size + at % cache.block_size) * kHeadSize;
}

// The new position's key and value to the cache; one thread a channel of the first half, a block a group and token.
__global__ void plain_store_kernel(const AttentionArgs args) {
  const int i = threadIdx.x;
  const int position = args.positions[blockIdx.y];
  const float* cosine = args.rotary + static_cast<size_t>(position) * kHeadSize;
  const float* k =
      args.qkv + ((static_cast<size_t>(blockIdx.y) * args.groups + blockIdx.x) * (args.heads_per_group + 2) +
                  args.heads_per_group) *
                     kHeadSize;
  const float2 turned = rotate(make_float2(k[i], k[i + kHeadSize / 2]), cosine[i], cosine[kHeadSize / 2 + i]);
  bf16* key = row_of(args, args.cache.keys, blockIdx.y, blockIdx.x, position);
  bf16* value = row_of(args, args.cache.values, blockIdx.y, blockIdx.x, position);
  key[i] = __float2bfloat16_rn(turned.x);
  key[i + kHeadSize / 2] = __float2bfloat16_rn(turned.y);
  value[i] = __float2bfloat16_rn(k[kHeadSize + i]);
  value[i + kHeadSize / 2] = __float2bfloat16_rn(k[kHeadSize + i + kHeadSize / 2]);
}

// One warp a query head and token.
__global__ void plain_attention_kernel(const AttentionArgs args) {
  __shared__ bf16 query[kHeadSize];
  __shared__ float scores[kSplit];
  const int lane = threadIdx.x;
  const int head = blockIdx.x;
  const int token = blockIdx.y;
  const int group = head / args.heads_per_group;
  const int heads = args.groups * args.heads_per_group;
  const int position = args.positions[token];
  const float* cosine = args.rotary + static_cast<size_t>(position) * kHeadSize;
  const float* sine = cosine + kHeadSize / 2;
  const float* rows =
      args.qkv + (static_cast<size_t>(token) * args.groups + group) * (args.heads_per_group + 2) * kHeadSize;
  const float* q = rows + head % args.heads_per_group * kHeadSize;
  const auto at_position = [&](void* base, int at) { return row_of(args, base, token, group, at); };
  for (int i = lane; i < kHeadSize / 2; i += 32) {
    const float2 turned = rotate(make_float2(q[i], q[i + kHeadSize / 2]), cosine[i], sine[i]);
    query[i] = __float2bfloat16_rn(turned.x);
    query[i + kHeadSize / 2] = __float2bfloat16_rn(turned.y);
  }
  __syncwarp();
  const int g = lane / 4;
  const int c = lane % 4;
  float all_top = 0;
  float all_sum = 0;
  float all[16][2];  // (channels / 8) of columns 2 c and 2 c + 1, in lanes with g == 0
  for (int begin = 0; begin <= position; begin += kSplit) {
    const int count = min(kSplit, position + 1 - begin);
    for (int first = 0; first < count; first += 8) {
      float score[4] = {};
      for (int i = 0; i < 4; ++i) {
        const bf16* key = at_position(args.cache.keys, begin + first + g) + 32 * i + 8 * c;
        for (int half = 0; half < 2; ++half) {
          uint4 a = make_uint4(0, 0, 0, 0);
          if (g == 0) {
            a.x = *reinterpret_cast<const uint32_t*>(&query[32 * i + 8 * c + 4 * half]);
            a.z = *reinterpret_cast<const uint32_t*>(&query[32 * i + 8 * c + 4 * half + 2]);
          }
          const bool there = first + g < count;
          mma(score, a, there ? *reinterpret_cast<const uint32_t*>(key + 4 * half) : 0,
              there ? *reinterpret_cast<const uint32_t*>(key + 4 * half + 2) : 0);
        }
      }
      if (g == 0) {
        scores[first + 2 * c] = score[0];
        scores[first + 2 * c + 1] = score[1];
      }
    }
    __syncwarp();
    float top = -INFINITY;
    float sums[16][4] = {};
    float ones[4] = {};
    for (int block = 0; block < count; block += kSubsplit) {
      float larger = top;
      for (int i = block; i < min(count, block + kSubsplit); ++i) larger = fmaxf(larger, scores[i]);
      if (block > 0) {
        const float by = rescale(top, larger);
        for (auto& sum : sums) {
          sum[0] = __fmul_rn(sum[0], by);
          sum[1] = __fmul_rn(sum[1], by);
        }
        ones[0] = __fmul_rn(ones[0], by);
      }
      top = larger;
      for (int first = block; first < min(count, block + kSubsplit); first += 16) {
        uint4 high = make_uint4(0, 0, 0, 0);
        uint4 low = make_uint4(0, 0, 0, 0);
        const auto p = [&](int i) { return i < count ? probability(scores[i], top) : 0.0f; };
        if (g == 0) {
          split_probabilities(p(first + 2 * c), p(first + 2 * c + 1), high.x, low.x);
          split_probabilities(p(first + 2 * c + 8), p(first + 2 * c + 9), high.z, low.z);
        }
        const auto value = [&](int i, int channel) {
          return i < count ? at_position(args.cache.values, begin + i)[channel] : __float2bfloat16_rn(0.0f);
        };
        for (int n = 0; n < 16; ++n) {
          const uint32_t b0 = pack(value(first + 2 * c, 8 * n + g), value(first + 2 * c + 1, 8 * n + g));
          const uint32_t b1 = pack(value(first + 2 * c + 8, 8 * n + g), value(first + 2 * c + 9, 8 * n + g));
          mma(sums[n], high, b0, b1);
          mma(sums[n], low, b0, b1);
        }
        mma(ones, high, kOnes, kOnes);
        mma(ones, low, kOnes, kOnes);
      }
    }
    const float larger = begin == 0 ? top : fmaxf(all_top, top);
    const float by = begin == 0 ? 0.0f : rescale(all_top, larger);
    const float its_by = begin == 0 ? 0.0f : rescale(top, larger);
    all_sum = begin == 0 ? ones[0] : __fmaf_rn(ones[0], its_by, __fmul_rn(all_sum, by));
    for (int n = 0; n < 16; ++n) {
      for (int i = 0; i < 2; ++i) {
        all[n][i] = begin == 0 ? sums[n][i] : __fmaf_rn(sums[n][i], its_by, __fmul_rn(all[n][i], by));
      }
    }
    all_top = larger;
    __syncwarp();
  }
  if (g != 0) return;
  bf16* y = static_cast<bf16*>(args.y) + (static_cast<size_t>(token) * heads + head) * kHeadSize;
  for (int n = 0; n < 16; ++n) {
    for (int i = 0; i < 2; ++i) y[8 * n + 2 * c + i] = __float2bfloat16_rn(attended(all[n][i], all_sum));
  }
}

}  // namespace

void plain_attention(const AttentionArgs& args, cudaStream_t stream) {
  plain_store_kernel<<<dim3(args.groups, args.tokens), kHeadSize / 2, 0, stream>>>(args);
  plain_attention_kernel<<<dim3(args.groups * args.heads_per_group, args.tokens), 32, 0, stream>>>(args);
}

}  // namespace assay::cuda::fast
