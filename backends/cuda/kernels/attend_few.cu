#include "backends/cuda/kernels/attend_bf16.h"
#include "backends/cuda/kernels/attend_few.h"
#include "backends/cuda/kernels/attention_bf16.cuh"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kMostRows = 16;                // query heads of a group
constexpr int kTiles = kSplit / 8 / kWarps;  // of eight positions, of a warp
constexpr int kBlocks = kSplit / kSubsplit;
constexpr int kScoreStride = kSplit + 4;        // floats
constexpr int kProbabilityStride = kSplit + 8;  // bf16

// Shared memory: values, then what each of `rows` query heads has.
template <int kChannels>
struct Layout {
  static constexpr int kValueStride = kChannels + 8;  // bf16: no bank conflicts
  static constexpr size_t kValues = size_t{kSplit} * kValueStride * sizeof(Bf16);
  static constexpr size_t kRow = kScoreStride * sizeof(float) + 2 * kProbabilityStride * sizeof(Bf16);
  static constexpr size_t bytes(int rows) {
    return kValues + static_cast<size_t>(rows) * (kRow + kBlocks * sizeof(float));
  }
};

// One block a split of a token's group. All keys go to registers and all values to shared memory at once: warp w has
// positions 8 (w + 8 j) + lane / 4.
template <int kChannels>
class Split {
 public:
  __device__ Split(const AttendArgs& a, int token, int slot, char* shared)
      : a_(a),
        rows_(a.per_group),
        token_(token),
        slot_(slot),
        begin_(static_cast<int>(blockIdx.z) * kSplit),
        count_(min(kSplit, a.tokens.position[token] + 1 - begin_)),
        warp_(static_cast<int>(threadIdx.x) / 32),
        g_(static_cast<int>(threadIdx.x) % 32 / 4),
        c_(static_cast<int>(threadIdx.x) % 4),
        values_(reinterpret_cast<Bf16*>(shared)),
        scores_(reinterpret_cast<float*>(shared + Layout<kChannels>::kValues)),
        high_(reinterpret_cast<Bf16*>(scores_ + rows_ * kScoreStride)),
        low_(high_ + rows_ * kProbabilityStride),
        top_(reinterpret_cast<float*>(low_ + rows_ * kProbabilityStride)) {}

  __device__ void attend() {
    if (count_ <= 0) return;
    ask();
    score();
    __syncthreads();
    weigh_scores();
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    if (16 * warp_ < kChannels) weigh_values();
  }

 private:
  static constexpr int kSteps = kChannels / 32;

  __device__ static uint4 load(const void* from) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
  }

  __device__ void ask() {
    const int group = static_cast<int>(blockIdx.x);
    const Bf16* rows[kTiles];
    bool there[kTiles];
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int at = 8 * (warp_ + kWarps * j) + g_;
      there[j] = at < count_;
      const int64_t place =
          there[j] ? cache_offset(a_.cache, a_.tokens, a_.layer, token_, group, begin_ + at) + 8 * c_ : 0;
      rows[j] = static_cast<const Bf16*>(a_.cache.values) + place;
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        keys_[j][i] =
            there[j] ? load(static_cast<const Bf16*>(a_.cache.keys) + place + 32 * i) : make_uint4(0, 0, 0, 0);
      }
    }
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int at = 8 * (warp_ + kWarps * j) + g_;
      Bf16* to = values_ + at * Layout<kChannels>::kValueStride + 8 * c_;
      if (at >= round_up(count_, 16)) continue;
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         static_cast<uint32_t>(__cvta_generic_to_shared(to + 32 * i))),
                     "l"(rows[j] + 32 * i), "r"(there[j] ? 16 : 0)
                     : "memory");
      }
    }
  }

  __device__ uint4 query(int row, int i) const {
    if (row >= rows_) return make_uint4(0, 0, 0, 0);
    const int64_t head = int64_t{token_} * a_.cache.groups * rows_ + blockIdx.x * rows_ + row;
    return *reinterpret_cast<const uint4*>(static_cast<const Bf16*>(a_.queries) + head * kChannels + 32 * i + 8 * c_);
  }

  __device__ void score() {
    uint4 p[kSteps];
    uint4 q[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      p[i] = query(g_, i);
      q[i] = query(g_ + 8, i);
    }
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int first = 8 * (warp_ + kWarps * j);
      if (first >= count_) continue;
      float sum[4] = {};
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        mma(sum, make_uint4(p[i].x, q[i].x, p[i].y, q[i].y), keys_[j][i].x, keys_[j][i].y);
        mma(sum, make_uint4(p[i].z, q[i].z, p[i].w, q[i].w), keys_[j][i].z, keys_[j][i].w);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (g_ + 8 * r >= rows_) continue;
        *reinterpret_cast<float2*>(scores_ + (g_ + 8 * r) * kScoreStride + first + 2 * c_) =
            make_float2(sum[2 * r], sum[2 * r + 1]);
      }
    }
  }

  __device__ void weigh_scores() {
    const float c = kLog2E * a_.scale;
    const int lane = 4 * g_ + c_;
    for (int r = warp_; r < rows_; r += kWarps) {
      float2 score[kBlocks];
      float top[kBlocks];
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const int at = block * kSubsplit + 2 * lane;
        const float2 both = *reinterpret_cast<const float2*>(scores_ + r * kScoreStride + at);
        score[block].x = at < count_ ? both.x : -INFINITY;
        score[block].y = at + 1 < count_ ? both.y : -INFINITY;
        top[block] = fmaxf(score[block].x, score[block].y);
      }
#pragma unroll
      for (int d = 16; d > 0; d /= 2) {
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
          top[block] = fmaxf(top[block], __shfl_xor_sync(kWholeWarp, top[block], d));
        }
      }
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const int at = block * kSubsplit + 2 * lane;
        if (block > 0) top[block] = fmaxf(top[block - 1], top[block]);
        uint32_t high, low;
        split_probabilities(at < count_ ? probability(score[block].x, top[block], c) : 0.0f,
                            at + 1 < count_ ? probability(score[block].y, top[block], c) : 0.0f, high, low);
        *reinterpret_cast<uint32_t*>(high_ + r * kProbabilityStride + at) = high;
        *reinterpret_cast<uint32_t*>(low_ + r * kProbabilityStride + at) = low;
        if (lane == 0) top_[r * kBlocks + block] = top[block];
      }
    }
  }

  // Warp w has channels 16 w .. 16 w + 15.
  __device__ void weigh_values() {
    const float c = kLog2E * a_.scale;
    float front[4] = {};
    float back[4] = {};
    float ones[4] = {};
    const int lane = 4 * g_ + c_;
    const auto matrix = static_cast<uint32_t>(
        __cvta_generic_to_shared(values_ + lane % 16 * Layout<kChannels>::kValueStride + 16 * warp_ + lane / 16 * 8));
    const int steps = (count_ + 15) / 16;
#pragma unroll 4
    for (int step = 0; step < steps; ++step) {
      if (step % 4 == 0 && step > 0) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          if (g_ + 8 * r >= rows_) continue;
          const float* tops = top_ + (g_ + 8 * r) * kBlocks + step / 4;
          const float by = rescale(tops[-1], tops[0], c);
#pragma unroll
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            front[i] = __fmul_rn(front[i], by);
            back[i] = __fmul_rn(back[i], by);
            ones[i] = __fmul_rn(ones[i], by);
          }
        }
      }
      const uint4 high = probabilities(high_, 16 * step + 2 * c_);
      const uint4 low = probabilities(low_, 16 * step + 2 * c_);
      uint4 v;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(matrix + step * 16 * Layout<kChannels>::kValueStride * static_cast<int>(sizeof(Bf16)))
                   : "memory");
      mma(front, high, v.x, v.y);
      mma(front, low, v.x, v.y);
      mma(back, high, v.z, v.w);
      mma(back, low, v.z, v.w);
      mma(ones, high, kOnes, kOnes);
      mma(ones, low, kOnes, kOnes);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (g_ + 8 * r < rows_) store(g_ + 8 * r, front + 2 * r, back + 2 * r, ones[2 * r]);
    }
  }
  __device__ uint4 probabilities(const Bf16* p, int at) const {
    const auto word = [&](int r, int i) {
      return r < rows_ ? *reinterpret_cast<const uint32_t*>(p + r * kProbabilityStride + i) : 0u;
    };
    return make_uint4(word(g_, at), word(g_ + 8, at), word(g_, at + 8), word(g_ + 8, at + 8));
  }

  // The result where this split is all there is.
  __device__ void store(int row, const float* front, const float* back, float ones) const {
    const int heads = a_.cache.groups * rows_;
    const int head = static_cast<int>(blockIdx.x) * rows_ + row;
    const int channel = 16 * warp_ + 2 * c_;
    if (begin_ == 0 && count_ == a_.tokens.position[token_] + 1) {
      Bf16* y = static_cast<Bf16*>(a_.y.data) + int64_t{token_} * a_.y.stride + head * kChannels + channel;
      *reinterpret_cast<uint32_t*>(y) = two_bf16(attended(front[0], ones), attended(front[1], ones));
      *reinterpret_cast<uint32_t*>(y + 8) = two_bf16(attended(back[0], ones), attended(back[1], ones));
      return;
    }
    float* result = split_result(a_, heads, static_cast<int>(gridDim.z), slot_, head, static_cast<int>(blockIdx.z));
    *reinterpret_cast<float2*>(result + channel) = make_float2(front[0], front[1]);
    *reinterpret_cast<float2*>(result + channel + 8) = make_float2(back[0], back[1]);
    if (channel > 0) return;
    result[kChannels] = top_[row * kBlocks + (count_ - 1) / kSubsplit];
    result[kChannels + 1] = ones;
  }

  const AttendArgs& a_;
  int rows_;
  int token_;
  int slot_;
  int begin_;
  int count_;
  int warp_;
  int g_;
  int c_;
  Bf16* values_;   // (kSplit, kValueStride)
  float* scores_;  // (rows, kScoreStride)
  Bf16* high_;     // (rows, kProbabilityStride)
  Bf16* low_;
  float* top_;  // (rows, kBlocks): running maximum
  uint4 keys_[kTiles][kSteps];
};

template <int kChannels>
__global__ void __launch_bounds__(kThreads, 2) few_kernel(const __grid_constant__ AttendArgs a) {
  extern __shared__ __align__(16) char shared[];
  const auto slot = static_cast<int>(blockIdx.y);
  int token = a.first + slot;
  if (a.tokens.bundles != nullptr) {
    if (a.tokens.bundles[2 * slot + 1] != 1) return;
    token = a.tokens.bundles[2 * slot];
  }
  Split<kChannels>(a, token, slot, shared).attend();
}

template <int kChannels>
void launch(const AttendArgs& args, int count, cudaStream_t stream) {
  const size_t shared = Layout<kChannels>::bytes(args.per_group);
  check(cudaFuncSetAttribute(few_kernel<kChannels>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)),
        "attend_few");
  const dim3 grid(static_cast<unsigned>(args.cache.groups), static_cast<unsigned>(count),
                  static_cast<unsigned>(splits_for(args.tokens.longest)));
  few_kernel<kChannels><<<grid, kThreads, shared, stream>>>(args);
  check_launch("attend_few");
}

}  // namespace

bool can_attend_few(const AttendArgs& args) {
  return args.cache.bf16 && (args.cache.channels == 64 || args.cache.channels == 128) && args.per_group <= kMostRows;
}

void attend_few(const AttendArgs& args, cudaStream_t stream) {
  const int count = args.tokens.bundles != nullptr ? args.tokens.bundle_count : args.tokens.count - args.first;
  if (count == 0) return;
  (args.cache.channels == 64 ? launch<64> : launch<128>)(args, count, stream);
  combine_bf16(args, 1, stream);
}

}  // namespace assay::cuda
