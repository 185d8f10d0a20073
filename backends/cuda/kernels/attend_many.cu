#include "backends/cuda/kernels/attend_many.h"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kKeys = 64;  // of one chunk in shared memory
constexpr int kPad = 4;    // floats between rows, against bank conflicts
constexpr int kScores = kSplit + kPad;
constexpr int kOwn = 4;  // queries and keys of a thread: every 8th query, every 16th key

// Where channel c lies in a row of queries or keys. The sixteen lanes of a dot are c mod 16; those whose sums meet
// first in the tree, l, l+4, l+8 and l+12, lie side by side: (part, c / 16, l / 4), parts in the order of l mod 4 = 0,
// 2, 1, 3.
template <int kChannels>
__device__ int place_of(int c) {
  const int l = c % kLanes;
  const int part = l % 2 * 2 + l % 4 / 2;
  return part * (kChannels / 4) + c / kLanes * 4 + l / 4;
}

// Scores of 4 x 4 pairs: all lanes of a pair are in one thread, a part of them at a time.
template <int kChannels>
__device__ void score_pairs(const float* queries, const float* keys, float (&sums)[kOwn][kOwn]) {
  constexpr int kRow = kChannels + kPad;
  const float* q = queries + static_cast<int>(threadIdx.x) % 8 * kRow;
  const float* k = keys + static_cast<int>(threadIdx.x) / 8 * kRow;
  float half[kOwn][kOwn];  // parts 0 and 1, then 2 and 3
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    float acc[kOwn][kOwn][4] = {};
#pragma unroll 2
    for (int j = 0; j < kChannels / kLanes; ++j) {
      const int at = part * (kChannels / 4) + j * 4;
      float4 b[kOwn];
#pragma unroll
      for (int n = 0; n < kOwn; ++n) b[n] = *reinterpret_cast<const float4*>(k + n * 16 * kRow + at);
#pragma unroll
      for (int m = 0; m < kOwn; ++m) {
        const float4 a = *reinterpret_cast<const float4*>(q + m * 8 * kRow + at);
#pragma unroll
        for (int n = 0; n < kOwn; ++n) {
          acc[m][n][0] = __fmaf_rn(a.x, b[n].x, acc[m][n][0]);
          acc[m][n][1] = __fmaf_rn(a.y, b[n].y, acc[m][n][1]);
          acc[m][n][2] = __fmaf_rn(a.z, b[n].z, acc[m][n][2]);
          acc[m][n][3] = __fmaf_rn(a.w, b[n].w, acc[m][n][3]);
        }
      }
    }
#pragma unroll
    for (int m = 0; m < kOwn; ++m) {
#pragma unroll
      for (int n = 0; n < kOwn; ++n) {
        const float sum = (acc[m][n][0] + acc[m][n][2]) + (acc[m][n][1] + acc[m][n][3]);
        half[m][n] = part % 2 == 0 ? sum : half[m][n] + sum;
        if (part == 1) sums[m][n] = half[m][n];
        if (part == 3) sums[m][n] = sums[m][n] + half[m][n];
      }
    }
  }
}

// One block a split of a head of a bundle.
template <int kChannels>
class Split {
 public:
  __device__ Split(const AttendArgs& a, int first, int count, float* shared)
      : a_(a),
        first_(first),
        count_(count),
        head_(static_cast<int>(blockIdx.y)),
        begin_(static_cast<int>(blockIdx.x) * kSplit),
        longest_(length(count - 1)),
        queries_(shared),
        rows_(queries_ + kBundle * kRow),
        scores_(rows_ + kKeys * kRow) {}

  __device__ int longest() const { return longest_; }

  __device__ void load_queries() {
    const int heads = static_cast<int>(gridDim.y);
    for (int i = thread(); i < kBundle * kChannels; i += kThreads) {
      const int t = i / kChannels;
      const int c = i % kChannels;
      const int64_t from = (int64_t{first_ + t} * heads + head_) * kChannels + c;
      queries_[t * kRow + place_of<kChannels>(c)] = t < count_ ? a_.queries[from] : 0.0f;
    }
  }

  __device__ void score() {
    for (int chunk = 0; chunk < longest_; chunk += kKeys) {
      __syncthreads();
      load_rows<true>(a_.cache.keys, chunk);
      __syncthreads();
      float sums[kOwn][kOwn];
      score_pairs<kChannels>(queries_, rows_, sums);
#pragma unroll
      for (int m = 0; m < kOwn; ++m) {
#pragma unroll
        for (int n = 0; n < kOwn; ++n) {
          scores_[(thread() % 8 + m * 8) * kScores + chunk + thread() / 8 + n * 16] = sums[m][n] * a_.scale;
        }
      }
    }
    __syncthreads();
  }

  __device__ void softmax() {
    for (int t = thread() / 32; t < count_; t += kThreads / 32) {
      const int own = length(t);
      if (own <= 0) continue;
      float top;
      const float total = split_softmax(scores_ + t * kScores, own, top);
      if (thread() % 32 != 0) continue;
      float* result = result_of(t);
      result[kChannels] = top;
      result[kChannels + 1] = total;
    }
  }

  // A thread: four queries, channels 4 d .. 4 d + 3, and as many 64 further where there are 128.
  __device__ void weigh() {
    constexpr int kQuads = kChannels / 64;
    const int d = thread() / 8 * 4;
    int own[kOwn];
#pragma unroll
    for (int m = 0; m < kOwn; ++m) own[m] = thread() % 8 + m * 8 < count_ ? length(thread() % 8 + m * 8) : 0;
    float sum[kOwn][kQuads][4] = {};
    for (int chunk = 0; chunk < longest_; chunk += kKeys) {
      __syncthreads();
      load_rows<false>(a_.cache.values, chunk);
      __syncthreads();
      const int end = min(kKeys, longest_ - chunk);
#pragma unroll 2
      for (int j = 0; j < end; ++j) {
        float4 v[kQuads];
#pragma unroll
        for (int n = 0; n < kQuads; ++n) v[n] = *reinterpret_cast<const float4*>(rows_ + j * kRow + n * 64 + d);
#pragma unroll
        for (int m = 0; m < kOwn; ++m) {
          if (chunk + j >= own[m]) continue;
          const float e = scores_[(thread() % 8 + m * 8) * kScores + chunk + j];
#pragma unroll
          for (int n = 0; n < kQuads; ++n) {
            sum[m][n][0] = __fmaf_rn(e, v[n].x, sum[m][n][0]);
            sum[m][n][1] = __fmaf_rn(e, v[n].y, sum[m][n][1]);
            sum[m][n][2] = __fmaf_rn(e, v[n].z, sum[m][n][2]);
            sum[m][n][3] = __fmaf_rn(e, v[n].w, sum[m][n][3]);
          }
        }
      }
    }
#pragma unroll
    for (int m = 0; m < kOwn; ++m) {
      if (own[m] <= 0) continue;
      float* result = result_of(thread() % 8 + m * 8);
#pragma unroll
      for (int i = 0; i < kQuads * 4; ++i) result[i / 4 * 64 + d + i % 4] = sum[m][i / 4][i % 4];
    }
  }

 private:
  static constexpr int kRow = kChannels + kPad;

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  // Positions of this split that query t of the bundle sees; below 1: none.
  __device__ int length(int t) const { return min(kSplit, a_.tokens.position[first_ + t] + 1 - begin_); }

  __device__ float* result_of(int t) const {
    return split_result(a_, static_cast<int>(gridDim.y), static_cast<int>(gridDim.x), first_ + t, head_,
                        static_cast<int>(blockIdx.x));
  }

  // Keys (their channels as place_of says) or values of the chunk, zeros behind the last position that is seen.
  template <bool kKeysOfIt>
  __device__ void load_rows(const void* store, int chunk) {
    const int group = head_ / a_.per_group;
    for (int i = thread(); i < kKeys * kChannels / 8; i += kThreads) {
      const int j = i / (kChannels / 8);
      const int c = i % (kChannels / 8) * 8;
      uint4 bits{0, 0, 0, 0};
      if (chunk + j < longest_) {
        const int64_t place = cache_offset(a_.cache, a_.tokens, a_.layer, first_, group, begin_ + chunk + j);
        bits = *reinterpret_cast<const uint4*>(static_cast<const Bfloat16*>(store) + place + c);
      }
      const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const uint32_t wide = n % 2 == 0 ? words[n / 2] << 16 : words[n / 2] & 0xffff0000u;
        rows_[j * kRow + (kKeysOfIt ? place_of<kChannels>(c + n) : c + n)] = __uint_as_float(wide);
      }
    }
  }

  const AttendArgs& a_;
  int first_;
  int count_;
  int head_;
  int begin_;
  int longest_;
  float* queries_;  // (kBundle, kRow)
  float* rows_;     // (kKeys, kRow)
  float* scores_;   // (kBundle, kScores)
};

template <int kChannels>
constexpr size_t shared_bytes() {
  return ((kBundle + kKeys) * (kChannels + kPad) + kBundle * kScores) * sizeof(float);
}

template <int kChannels>
__global__ void __launch_bounds__(kThreads, 2) many_kernel(AttendArgs a) {
  extern __shared__ __align__(16) float shared[];
  const int32_t* bundle = a.tokens.bundles + 2 * int64_t{blockIdx.z};
  Split<kChannels> split(a, bundle[0], bundle[1], shared);
  if (split.longest() <= 0) return;
  split.load_queries();
  split.score();
  split.softmax();
  split.weigh();
}

template <int kChannels>
void launch(const AttendArgs& args, cudaStream_t stream) {
  constexpr int kShared = static_cast<int>(shared_bytes<kChannels>());
  check(cudaFuncSetAttribute(many_kernel<kChannels>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "attend_many");
  const dim3 grid(static_cast<unsigned>(splits_for(args.tokens.longest)),
                  static_cast<unsigned>(args.cache.groups * args.per_group),
                  static_cast<unsigned>(args.tokens.bundle_count));
  many_kernel<kChannels><<<grid, kThreads, kShared, stream>>>(args);
  check_launch("attend_many");
}

}  // namespace

bool can_attend_many(const AttendArgs& args) {
  return args.cache.bf16 && (args.cache.channels == 64 || args.cache.channels == 128);
}

void attend_many(const AttendArgs& args, cudaStream_t stream) {
  if (args.tokens.count == args.first) return;
  if (args.cache.channels == 64) {
    launch<64>(args, stream);
  } else {
    launch<128>(args, stream);
  }
  combine_splits(args, stream);
}

void attend_any(const AttendArgs& args, cudaStream_t stream) {
  constexpr int kEnough = 4;  // tokens a bundle from which sharing keys and values pays
  const bool many = can_attend_many(args) && args.tokens.count - args.first >= kEnough * args.tokens.bundle_count;
  (many ? attend_many : attend)(args, stream);
}

}  // namespace assay::cuda
