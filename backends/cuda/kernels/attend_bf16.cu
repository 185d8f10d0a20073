#include <algorithm>

#include "backends/cuda/kernels/attend_bf16.h"
#include "backends/cuda/kernels/attention_bf16.cuh"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kRows = 16;                       // (token, head of the group) pairs that a block takes
constexpr int kScoreStride = kSplit + 4;        // floats
constexpr int kProbabilityStride = kSplit + 8;  // bf16
constexpr int kSteps = 32;                      // channels of two mma's

struct Shared {
  float scores[kRows][kScoreStride];
  __align__(16) Bf16 high[kRows][kProbabilityStride];
  __align__(16) Bf16 low[kRows][kProbabilityStride];
  float top[kRows][kSplit / kSubsplit];  // running maximum
  int64_t places[kSplit];                // of the split's positions in the cache
  int count[kRows];                      // positions of this split that the row sees
  __align__(16) Bf16 rows[1];            // queries (kRows, row_stride), then, where staged, values (kSplit, row_stride)
};

// bf16 between rows in shared memory: eight more than there are, against bank conflicts.
__host__ __device__ constexpr int row_stride(int channels) { return round_up(channels, kSteps) + 8; }

constexpr size_t shared_bytes(int channels, bool staged) {
  return sizeof(Shared) + static_cast<size_t>((kRows + (staged ? kSplit : 0)) * row_stride(channels)) * sizeof(Bf16);
}

// Rows begin .. of a bundle: all query heads of a group, token by token.
struct Rows {
  int first = 0;  // token
  int count = 0;  // tokens of the bundle
  int begin = 0;  // row
  int slot = 0;   // of the first token's results in `splits`
};

__device__ Rows rows_of(const AttendArgs& a, int most, int index, int chunks) {
  const int bundle = index / chunks;
  const int begin = index % chunks * kRows;
  if (a.tokens.bundles == nullptr) return {a.first + bundle, 1, begin, bundle};
  const int first = a.tokens.bundles[2 * bundle];
  const int count = a.tokens.bundles[2 * bundle + 1];
  return {first, count <= most ? count : 0, begin, most == 1 ? bundle : first - a.first};
}

// Eight neighbouring channels of a row of `channels`, zeros behind them.
__device__ uint4 load_channels(const Bf16* row, int at, int channels) {
  if (channels % 8 == 0) return at < channels ? *reinterpret_cast<const uint4*>(row + at) : make_uint4(0, 0, 0, 0);
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Bf16 zero = __float2bfloat16_rn(0.0f);
    words[i] = two_bf16(at + 2 * i < channels ? row[at + 2 * i] : zero,
                        at + 2 * i + 1 < channels ? row[at + 2 * i + 1] : zero);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// Eight bf16 from global to shared memory, zeros where they are not `there`.
__device__ void copy_async(Bf16* to, const Bf16* from, bool there) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(there ? 16 : 0)
      : "memory");
}
__device__ void copy_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Four 8 x 8 matrices, transposed; lane i gives the row i % 8 of matrix i / 8.
__device__ uint4 load_transposed(const Bf16* row) {
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
  return v;
}

// One block a split of kRows rows of a group. Staged: values are asked for at once and wait in shared memory.
template <bool kStaged>
class Split {
 public:
  __device__ Split(const AttendArgs& a, const Rows& rows, char* shared)
      : a_(a),
        s_(*reinterpret_cast<Shared*>(shared)),
        rows_(rows),
        group_(static_cast<int>(blockIdx.y)),
        begin_(static_cast<int>(blockIdx.z) * kSplit),
        channels_(a.cache.channels),
        stride_(row_stride(a.cache.channels)),
        c_scale_(kLog2E * a.scale),
        warp_(static_cast<int>(threadIdx.x) / 32),
        g_(static_cast<int>(threadIdx.x) % 32 / 4),
        c_(static_cast<int>(threadIdx.x) % 4) {}

  // Whether any row sees a position of this split.
  __device__ bool prepare() {
    used_ = min(kRows, rows_.count * a_.per_group - rows_.begin);
    if (used_ <= 0) return false;
    longest_ = seen_by(token(used_ - 1));
    if (longest_ <= 0) return false;
    least_ = max(seen_by(token(0)), 0);
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread < longest_) {
      s_.places[thread] = cache_offset(a_.cache, a_.tokens, a_.layer, rows_.first, group_, begin_ + thread);
    }
    if (thread < kRows) s_.count[thread] = thread < used_ ? max(seen_by(token(thread)), 0) : 0;
    __syncthreads();
    if constexpr (kStaged) stage_values();
    for (int i = thread; i < kRows * stride_ / 8; i += kThreads) {
      const int r = i / (stride_ / 8);
      const int at = i % (stride_ / 8) * 8;
      const auto* queries = static_cast<const Bf16*>(a_.queries);
      const uint4 q = r < used_ ? load_channels(queries + head(r) * channels_, at, channels_) : make_uint4(0, 0, 0, 0);
      *reinterpret_cast<uint4*>(s_.rows + r * stride_ + at) = q;
    }
    __syncthreads();
    return true;
  }

  __device__ void score() {
    for (int first = 8 * warp_; first < longest_; first += 8 * kWarps) {
      const bool there = first + g_ < longest_;
      const Bf16* key = static_cast<const Bf16*>(a_.cache.keys) + s_.places[there ? first + g_ : 0];
      float sum[4] = {};
#pragma unroll 4
      for (int i = 8 * c_; i < round_up(channels_, kSteps); i += kSteps) {
        const uint4 k = there ? load_channels(key, i, channels_) : make_uint4(0, 0, 0, 0);
        const uint4 p = *reinterpret_cast<const uint4*>(s_.rows + g_ * stride_ + i);
        const uint4 q = *reinterpret_cast<const uint4*>(s_.rows + (g_ + 8) * stride_ + i);
        mma(sum, make_uint4(p.x, q.x, p.y, q.y), k.x, k.y);
        mma(sum, make_uint4(p.z, q.z, p.w, q.w), k.z, k.w);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) s_.scores[g_ + i / 2 * 8][first + 2 * c_ + i % 2] = sum[i];
    }
    __syncthreads();
  }

  __device__ void weigh_scores() {
    const int lane = 4 * g_ + c_;
    for (int r = warp_; r < used_; r += kWarps) {
      const int count = s_.count[r];
      float top = -INFINITY;
      for (int block = 0; block * kSubsplit < longest_; ++block) {
        const int at = block * kSubsplit + 2 * lane;
        float2 score = make_float2(-INFINITY, -INFINITY);
        if (at < count) score.x = s_.scores[r][at];
        if (at + 1 < count) score.y = s_.scores[r][at + 1];
        float larger = fmaxf(score.x, score.y);
#pragma unroll
        for (int d = 16; d > 0; d /= 2) larger = fmaxf(larger, __shfl_xor_sync(kWholeWarp, larger, d));
        top = fmaxf(top, larger);
        uint32_t high, low;
        split_probabilities(at < count ? probability(score.x, top, c_scale_) : 0.0f,
                            at + 1 < count ? probability(score.y, top, c_scale_) : 0.0f, high, low);
        *reinterpret_cast<uint32_t*>(&s_.high[r][at]) = high;
        *reinterpret_cast<uint32_t*>(&s_.low[r][at]) = low;
        if (lane == 0) s_.top[r][block] = top;
      }
    }
    if constexpr (kStaged) copy_wait();
    __syncthreads();
  }

  // The sums of weights and of weighted values, 16 channels a warp and time.
  __device__ void weigh_values() {
    float ones[4] = {};
    accumulate(
        [&](int, const uint4& high, const uint4& low) {
          mma(ones, high, kOnes, kOnes);
          mma(ones, low, kOnes, kOnes);
        },
        ones);
    for (int first = 16 * warp_; first < channels_; first += 16 * kWarps) {
      float sums[8] = {};
      float(&front)[4] = *reinterpret_cast<float(*)[4]>(sums);
      float(&back)[4] = *reinterpret_cast<float(*)[4]>(sums + 4);
      accumulate(
          [&](int at, const uint4& high, const uint4& low) {
            const uint4 v = values(at, first);
            const bool mixed = least_ < min(at + 16, longest_);
            if (mixed && __any_sync(kWholeWarp, unbounded(v.x) || unbounded(v.y) || unbounded(v.z) || unbounded(v.w))) {
              add_row_by_row(front, high, low, v.x, v.y, at + 2 * c_);
              add_row_by_row(back, high, low, v.z, v.w, at + 2 * c_);
            } else {
              mma(front, high, v.x, v.y);
              mma(front, low, v.x, v.y);
              mma(back, high, v.z, v.w);
              mma(back, low, v.z, v.w);
            }
          },
          sums);
      store(front, ones, first + 2 * c_);
      store(back, ones, first + 8 + 2 * c_);
    }
    if (warp_ == 0 && c_ == 0) store_totals(ones);
  }

 private:
  // Token of row r of this block, and its query head (token, head).
  __device__ int token(int r) const { return rows_.first + (rows_.begin + r) / a_.per_group; }
  __device__ int head_of_token(int r) const { return group_ * a_.per_group + (rows_.begin + r) % a_.per_group; }
  __device__ int64_t head(int r) const { return int64_t{token(r)} * a_.cache.groups * a_.per_group + head_of_token(r); }
  __device__ int seen_by(int token) const { return min(kSplit, a_.tokens.position[token] + 1 - begin_); }

  __device__ float* result_of(int r) const {
    return split_result(a_, a_.cache.groups * a_.per_group, static_cast<int>(gridDim.z),
                        rows_.slot + token(r) - rows_.first, head_of_token(r), static_cast<int>(blockIdx.z));
  }

  __device__ Bf16* staged() const { return s_.rows + kRows * stride_; }

  // Asks for the values, with zeros behind the last that is seen, up to a multiple of 16 positions and channels.
  __device__ void stage_values() const {
    const int pieces = round_up(channels_, 16) / 8;
    for (int i = static_cast<int>(threadIdx.x); i < round_up(longest_, 16) * pieces; i += kThreads) {
      const int at = i / pieces;
      const int channel = i % pieces * 8;
      const bool there = at < longest_ && channel < channels_;
      copy_async(staged() + at * stride_ + channel,
                 static_cast<const Bf16*>(a_.cache.values) + (there ? s_.places[at] + channel : 0), there);
    }
  }

  // B operands of positions at .. at + 15: x, y of channels first .. first + 7, z, w of the next eight.
  __device__ uint4 values(int at, int first) const {
    if constexpr (kStaged) {
      const int lane = 4 * g_ + c_;
      return load_transposed(staged() + (at + lane % 16) * stride_ + first + lane / 16 * 8);
    } else {
      const auto value = [&](int i, int channel) {
        const int position = at + 2 * c_ + i;
        const bool there = position < longest_ && channel < channels_;
        return there ? (static_cast<const Bf16*>(a_.cache.values) + s_.places[position])[channel]
                     : __float2bfloat16_rn(0.0f);
      };
      const auto two = [&](int i, int channel) { return two_bf16(value(i, channel), value(i + 1, channel)); };
      return make_uint4(two(0, first + g_), two(8, first + g_), two(0, first + 8 + g_), two(8, first + 8 + g_));
    }
  }

  // The chain over the split's positions: add(position, high, low) for every 16; rescales `sums` in between.
  template <class Add, int kSums>
  __device__ void accumulate(const Add& add, float (&sums)[kSums]) const {
    for (int at = 0; at < longest_; at += 16) {
      if (at > 0 && at % kSubsplit == 0) {
        const float by = row_rescale(g_, at / kSubsplit);
        const float other = row_rescale(g_ + 8, at / kSubsplit);
#pragma unroll
        for (int i = 0; i < kSums; ++i) sums[i] = __fmul_rn(sums[i], i % 4 < 2 ? by : other);
      }
      add(at, probabilities(s_.high, at + 2 * c_), probabilities(s_.low, at + 2 * c_));
    }
  }
  __device__ float row_rescale(int r, int block) const {
    return r < used_ ? rescale(s_.top[r][block - 1], s_.top[r][block], c_scale_) : 1.0f;
  }
  __device__ uint4 probabilities(const Bf16 (&p)[kRows][kProbabilityStride], int at) const {
    const auto word = [&](int r, int i) { return r < used_ ? *reinterpret_cast<const uint32_t*>(&p[r][i]) : 0u; };
    return make_uint4(word(g_, at), word(g_ + 8, at), word(g_, at + 8), word(g_ + 8, at + 8));
  }

  // As two mma's, but no row meets a value that it does not see: 0 times infinity is not 0.
  __device__ void add_row_by_row(float (&sum)[4], const uint4& high, const uint4& low, uint32_t b0, uint32_t b1,
                                 int at) const {
#pragma unroll 1
    for (int r = 0; r < used_; ++r) {
      const int count = s_.count[r];
      const auto seen = [&](uint32_t two, int i) {
        return (i < count ? two & 0xffffu : 0) | (i + 1 < count ? two & 0xffff0000u : 0);
      };
      const auto only = [&](const uint4& p) {
        return make_uint4(g_ == r ? p.x : 0, g_ + 8 == r ? p.y : 0, g_ == r ? p.z : 0, g_ + 8 == r ? p.w : 0);
      };
      float its[4] = {sum[0], sum[1], sum[2], sum[3]};
      mma(its, only(high), seen(b0, at), seen(b1, at + 8));
      mma(its, only(low), seen(b0, at), seen(b1, at + 8));
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = g_ + i / 2 * 8 == r ? its[i] : sum[i];
    }
  }

  // Channels `channel` and the next of the thread's two rows: the result where this split is all there is.
  __device__ void store(const float (&sum)[4], const float (&ones)[4], int channel) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = g_ + i / 2 * 8;
      if (s_.count[r] == 0 || channel + i % 2 >= channels_) continue;
      if (a_.tokens.position[token(r)] < kSplit) {
        auto* y = static_cast<Bf16*>(a_.y.data) + int64_t{token(r)} * a_.y.stride + head_of_token(r) * channels_;
        y[channel + i % 2] = __float2bfloat16_rn(attended(sum[i], ones[i / 2 * 2]));
      } else {
        result_of(r)[channel + i % 2] = sum[i];
      }
    }
  }
  __device__ void store_totals(const float (&ones)[4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = g_ + 8 * i;
      if (s_.count[r] == 0) continue;
      if (a_.tokens.position[token(r)] >= kSplit) {
        float* result = result_of(r);
        result[channels_] = s_.top[r][(s_.count[r] - 1) / kSubsplit];
        result[channels_ + 1] = ones[2 * i];
      }
      if (begin_ > 0 || head_of_token(r) > 0) continue;
      const int width = a_.cache.groups * a_.per_group * channels_;
      auto* y = static_cast<Bf16*>(a_.y.data) + int64_t{token(r)} * a_.y.stride;
      for (int behind = width; behind < round_up(width, kTile); ++behind) y[behind] = __float2bfloat16_rn(0.0f);
    }
  }

  const AttendArgs& a_;
  Shared& s_;
  Rows rows_;
  int group_;
  int begin_;
  int channels_;
  int stride_;
  float c_scale_;
  int warp_;
  int g_;
  int c_;
  int used_ = 0;     // rows
  int longest_ = 0;  // positions that the last row sees
  int least_ = 0;    // that the first row sees
};

template <bool kStaged>
__global__ void __launch_bounds__(kThreads, 2)
    split_kernel(const __grid_constant__ AttendArgs a, int most, int chunks) {
  extern __shared__ __align__(16) char shared[];
  Split<kStaged> split(a, rows_of(a, most, static_cast<int>(blockIdx.x), chunks), shared);
  if (!split.prepare()) return;
  split.score();
  split.weigh_scores();
  split.weigh_values();
}

// Tokens of more than one split.
__global__ void __launch_bounds__(kThreads) combine_kernel(const __grid_constant__ AttendArgs a, int most, int splits) {
  const Rows rows = rows_of(a, most, static_cast<int>(blockIdx.x), 1);
  const int head = static_cast<int>(blockIdx.y);
  const auto index = static_cast<int>(blockIdx.z);
  if (index >= rows.count) return;
  const int token = rows.first + index;
  const int used = a.tokens.position[token] / kSplit + 1;
  if (used == 1) return;
  const int heads = static_cast<int>(gridDim.y);
  const int channels = a.cache.channels;
  const float c = kLog2E * a.scale;
  auto* y = static_cast<Bf16*>(a.y.data) + int64_t{token} * a.y.stride;
  for (int d = static_cast<int>(threadIdx.x); d < channels; d += static_cast<int>(blockDim.x)) {
    const float* its = split_result(a, heads, splits, rows.slot + index, head, 0);
    float value = its[d];
    float top = its[channels];
    float sum = its[channels + 1];
#pragma unroll 4
    for (int s = 1; s < used; ++s) {
      its += channels + 2;
      const SplitMerge merge = merge_splits(top, its[channels], c);
      value = merged(value, its[d], merge);
      sum = merged(sum, its[channels + 1], merge);
      top = merge.top;
    }
    y[head * channels + d] = __float2bfloat16_rn(attended(value, sum));
  }
}

template <bool kStaged>
void launch(const dim3& grid, const AttendArgs& args, int most, int chunks, cudaStream_t stream) {
  const size_t shared = shared_bytes(args.cache.channels, kStaged);
  check(cudaFuncSetAttribute(split_kernel<kStaged>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)),
        "attend_bf16");
  split_kernel<kStaged><<<grid, kThreads, shared, stream>>>(args, most, chunks);
  check_launch("attend_bf16");
}

}  // namespace

void attend_bf16(const AttendArgs& args, int most, cudaStream_t stream) {
  constexpr size_t kMostShared = size_t{200} << 10;
  const bool bundles = args.tokens.bundles != nullptr;
  const int count = bundles ? args.tokens.bundle_count : args.tokens.count - args.first;
  if (count == 0) return;
  const int most_tokens = bundles ? most : 1;
  const int chunks = (most_tokens * args.per_group + kRows - 1) / kRows;
  const int channels = args.cache.channels;
  const int splits = splits_for(args.tokens.longest);
  const dim3 grid(static_cast<unsigned>(count * chunks), static_cast<unsigned>(args.cache.groups),
                  static_cast<unsigned>(splits));
  const bool staged = channels % 8 == 0 && shared_bytes(channels, true) <= kMostShared;
  (staged ? launch<true> : launch<false>)(grid, args, most, chunks, stream);
  combine_bf16(args, most, stream);
}

void combine_bf16(const AttendArgs& args, int most, cudaStream_t stream) {
  const int splits = splits_for(args.tokens.longest);
  if (splits == 1) return;
  const bool bundles = args.tokens.bundles != nullptr;
  const int count = bundles ? args.tokens.bundle_count : args.tokens.count - args.first;
  combine_kernel<<<dim3(static_cast<unsigned>(count), static_cast<unsigned>(args.cache.groups * args.per_group),
                        static_cast<unsigned>(bundles ? most : 1)),
                   std::min(kThreads, round_up(args.cache.channels, 32)), 0, stream>>>(args, most, splits);
  check_launch("combine_bf16");
}

}  // namespace assay::cuda
