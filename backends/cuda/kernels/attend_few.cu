#include "backends/cuda/kernels/attend_bf16.h"
#include "backends/cuda/kernels/attend_few.h"
#include "backends/cuda/kernels/attention_bf16.cuh"
#include "backends/cuda/kernels/attention_math.cuh"
#include "backends/cuda/runtime/error.h"

namespace assay::cuda {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kMostRows = 16;  // query heads of a group
constexpr int kTiles = 4;      // of eight positions, of a warp

// A block of `warps` warps takes up to 32 * warps positions: 8 a whole split, 4 where no sequence has more than 128.
// Shared memory: values, then what each of `rows` query heads has.
template <int channels, int warps>
struct BlockOf {
  static constexpr int kChannels = channels;
  static constexpr int kWarps = warps;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kResident = 16 / kWarps;
  static constexpr int kPositions = kTiles * 8 * kWarps;
  static constexpr int kParts = kPositions / kSubsplit;
  static constexpr int kPieces = kChannels > 16 * kWarps ? kChannels / 16 / kWarps : 1;  // of 16 channels, of a warp
  static constexpr int kValueStride = kChannels + 8;                                     // bf16: no bank conflicts
  static constexpr int kScoreStride = kPositions + 4;                                    // floats
  static constexpr int kProbabilityStride = kPositions + 8;                              // bf16
  static constexpr size_t kValues = size_t{kPositions} * kValueStride * sizeof(Bf16);
  static constexpr size_t kRow = (kScoreStride + kParts) * sizeof(float) + 2 * kProbabilityStride * sizeof(Bf16);
  static constexpr size_t bytes(int rows) { return kValues + static_cast<size_t>(rows) * kRow; }
};

// One block a split of a token's group. All keys go to registers and all values to shared memory at once: warp w has
// positions 8 (w + 8 j) + lane / 4.
template <class Block>
class Split {
 public:
  __device__ Split(const AttendArgs& a, int token, int slot, bool alone, char* shared)
      : a_(a),
        rows_(a.per_group),
        token_(token),
        slot_(slot),
        begin_(static_cast<int>(blockIdx.z) * kSplit),
        table_(a.tokens.table[token]),
        count_(alone ? min(Block::kPositions, a.tokens.position[token] + 1 - begin_) : 0),
        warp_(static_cast<int>(threadIdx.x) / 32),
        g_(static_cast<int>(threadIdx.x) % 32 / 4),
        c_(static_cast<int>(threadIdx.x) % 4),
        values_(reinterpret_cast<Bf16*>(shared)),
        scores_(reinterpret_cast<float*>(shared + Block::kValues)),
        high_(reinterpret_cast<Bf16*>(scores_ + rows_ * Block::kScoreStride)),
        low_(high_ + rows_ * Block::kProbabilityStride),
        top_(reinterpret_cast<float*>(low_ + rows_ * Block::kProbabilityStride)) {}

  __device__ void attend() {
    if (count_ <= 0) return;
    ask();
    score();
    __syncthreads();
    weigh_scores();
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    if (16 * Block::kPieces * warp_ < kChannels) weigh_values();
  }

 private:
  static constexpr int kChannels = Block::kChannels;
  static constexpr int kSteps = kChannels / 32;

  // A row of keys or values is one run of memory.
  __device__ static uint4 load(const void* from) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
  }

  // Of the cache, in keys or values of kChannels; behind the last position: the last one's.
  __device__ int row_of(int group, int at) const {
    const CacheView& cache = a_.cache;
    const int position = begin_ + min(at, count_ - 1);
    const int block = a_.layer * cache.block_count + a_.tokens.blocks[table_ + position / cache.block_size];
    return (block * cache.groups + group) * cache.block_size + position % cache.block_size;
  }

  __device__ void ask() {
    const int group = static_cast<int>(blockIdx.x);
    const int lane = 4 * g_ + c_;
    const int mine = row_of(group, 8 * (warp_ + Block::kWarps * (lane / 8)) + lane % 8);
    int rows[kTiles];
#pragma unroll
    for (int j = 0; j < kTiles; ++j) rows[j] = __shfl_sync(kWholeWarp, mine, 8 * j + g_);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const bool there = 8 * (warp_ + Block::kWarps * j) + g_ < count_;
      const Bf16* key = static_cast<const Bf16*>(a_.cache.keys) + int64_t{rows[j]} * kChannels + 8 * c_;
#pragma unroll
      for (int i = 0; i < kSteps; ++i) keys_[j][i] = there ? load(key + 32 * i) : make_uint4(0, 0, 0, 0);
    }
    constexpr int kEights = kChannels / 8;
    constexpr int kAtOnce = 32 / kEights;  // rows
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int first = 8 * (warp_ + Block::kWarps * j);
      if (first >= round_up(count_, 16)) continue;
#pragma unroll
      for (int i = 0; i < 8 / kAtOnce; ++i) {
        const int row = i * kAtOnce + lane / kEights;
        const int from = __shfl_sync(kWholeWarp, mine, 8 * j + row);
        const Bf16* value = static_cast<const Bf16*>(a_.cache.values) + int64_t{from} * kChannels + lane % kEights * 8;
        const Bf16* to = values_ + (first + row) * Block::kValueStride + lane % kEights * 8;
        asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(
                         static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                     "l"(value), "r"(first + row < count_ ? 16 : 0)
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
      const int first = 8 * (warp_ + Block::kWarps * j);
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
        *reinterpret_cast<float2*>(scores_ + (g_ + 8 * r) * Block::kScoreStride + first + 2 * c_) =
            make_float2(sum[2 * r], sum[2 * r + 1]);
      }
    }
  }

  __device__ void weigh_scores() {
    const float c = kLog2E * a_.scale;
    const int lane = 4 * g_ + c_;
    for (int r = warp_; r < rows_; r += Block::kWarps) {
      float2 score[Block::kParts];
      float top[Block::kParts];
#pragma unroll
      for (int block = 0; block < Block::kParts; ++block) {
        const int at = block * kSubsplit + 2 * lane;
        const float2 both = *reinterpret_cast<const float2*>(scores_ + r * Block::kScoreStride + at);
        score[block].x = at < count_ ? both.x : -INFINITY;
        score[block].y = at + 1 < count_ ? both.y : -INFINITY;
        top[block] = fmaxf(score[block].x, score[block].y);
      }
#pragma unroll
      for (int d = 16; d > 0; d /= 2) {
#pragma unroll
        for (int block = 0; block < Block::kParts; ++block) {
          top[block] = fmaxf(top[block], __shfl_xor_sync(kWholeWarp, top[block], d));
        }
      }
#pragma unroll
      for (int block = 0; block < Block::kParts; ++block) {
        const int at = block * kSubsplit + 2 * lane;
        if (block > 0) top[block] = fmaxf(top[block - 1], top[block]);
        uint32_t high, low;
        split_probabilities(at < count_ ? probability(score[block].x, top[block], c) : 0.0f,
                            at + 1 < count_ ? probability(score[block].y, top[block], c) : 0.0f, high, low);
        *reinterpret_cast<uint32_t*>(high_ + r * Block::kProbabilityStride + at) = high;
        *reinterpret_cast<uint32_t*>(low_ + r * Block::kProbabilityStride + at) = low;
        if (lane == 0) top_[r * Block::kParts + block] = top[block];
      }
    }
  }

  // Warp w has the w-th kPieces times 16 channels.
  __device__ void weigh_values() {
    const float c = kLog2E * a_.scale;
    float front[Block::kPieces][4] = {};
    float back[Block::kPieces][4] = {};
    float ones[4] = {};
    const int lane = 4 * g_ + c_;
    const auto matrix = static_cast<uint32_t>(__cvta_generic_to_shared(values_ + lane % 16 * Block::kValueStride +
                                                                       16 * Block::kPieces * warp_ + lane / 16 * 8));
    const int steps = (count_ + 15) / 16;
#pragma unroll 4
    for (int step = 0; step < steps; ++step) {
      if (step % 4 == 0 && step > 0) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          if (g_ + 8 * r >= rows_) continue;
          const float* tops = top_ + (g_ + 8 * r) * Block::kParts + step / 4;
          const float by = rescale(tops[-1], tops[0], c);
#pragma unroll
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            ones[i] = __fmul_rn(ones[i], by);
#pragma unroll
            for (int piece = 0; piece < Block::kPieces; ++piece) {
              front[piece][i] = __fmul_rn(front[piece][i], by);
              back[piece][i] = __fmul_rn(back[piece][i], by);
            }
          }
        }
      }
      const uint4 high = probabilities(high_, 16 * step + 2 * c_);
      const uint4 low = probabilities(low_, 16 * step + 2 * c_);
#pragma unroll
      for (int piece = 0; piece < Block::kPieces; ++piece) {
        uint4 v;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "r"(matrix + (step * 16 * Block::kValueStride + 16 * piece) * static_cast<int>(sizeof(Bf16)))
                     : "memory");
        mma(front[piece], high, v.x, v.y);
        mma(front[piece], low, v.x, v.y);
        mma(back[piece], high, v.z, v.w);
        mma(back[piece], low, v.z, v.w);
      }
      mma(ones, high, kOnes, kOnes);
      mma(ones, low, kOnes, kOnes);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (g_ + 8 * r >= rows_) continue;
#pragma unroll
      for (int piece = 0; piece < Block::kPieces; ++piece) {
        store(g_ + 8 * r, 16 * (Block::kPieces * warp_ + piece) + 2 * c_, front[piece] + 2 * r, back[piece] + 2 * r,
              ones[2 * r]);
      }
    }
  }
  __device__ uint4 probabilities(const Bf16* p, int at) const {
    const auto word = [&](int r, int i) {
      return r < rows_ ? *reinterpret_cast<const uint32_t*>(p + r * Block::kProbabilityStride + i) : 0u;
    };
    return make_uint4(word(g_, at), word(g_ + 8, at), word(g_, at + 8), word(g_ + 8, at + 8));
  }

  // The result where this split is all there is.
  __device__ void store(int row, int channel, const float* front, const float* back, float ones) const {
    const int heads = a_.cache.groups * rows_;
    const int head = static_cast<int>(blockIdx.x) * rows_ + row;
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
    result[kChannels] = top_[row * Block::kParts + (count_ - 1) / kSubsplit];
    result[kChannels + 1] = ones;
  }

  const AttendArgs& a_;
  int rows_;
  int token_;
  int slot_;
  int begin_;
  int table_;  // where the sequence's blocks begin
  int count_;  // positions of this split; 0: nothing to do
  int warp_;
  int g_;
  int c_;
  Bf16* values_;   // (kSplit, kValueStride)
  float* scores_;  // (rows, Block::kScoreStride)
  Bf16* high_;     // (rows, Block::kProbabilityStride)
  Bf16* low_;
  float* top_;  // (rows, Block::kParts): running maximum
  uint4 keys_[kTiles][kSteps];
};

template <class Block>
__global__ void __launch_bounds__(Block::kThreads, Block::kResident) few_kernel(const __grid_constant__ AttendArgs a) {
  extern __shared__ __align__(16) char shared[];
  const auto slot = static_cast<int>(blockIdx.y);
  const int32_t* bundle = a.tokens.bundles == nullptr ? nullptr : a.tokens.bundles + 2 * slot;
  const int token = bundle == nullptr ? a.first + slot : bundle[0];
  const bool alone = bundle == nullptr || bundle[1] == 1;  // asked after the loads that follow from the first
  Split<Block>(a, token, slot, alone, shared).attend();
}

template <class Block>
void launch(const AttendArgs& args, int count, cudaStream_t stream) {
  const size_t shared = Block::bytes(args.per_group);
  check(cudaFuncSetAttribute(few_kernel<Block>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
        "attend_few");
  const dim3 grid(static_cast<unsigned>(args.cache.groups), static_cast<unsigned>(count),
                  static_cast<unsigned>(splits_for(args.tokens.longest)));
  few_kernel<Block><<<grid, Block::kThreads, shared, stream>>>(args);
  check_launch("attend_few");
}

}  // namespace

bool can_attend_few(const AttendArgs& args) {
  return args.cache.bf16 && (args.cache.channels == 64 || args.cache.channels == 128) && args.per_group <= kMostRows;
}

void attend_few(const AttendArgs& args, cudaStream_t stream) {
  const int count = args.tokens.bundles != nullptr ? args.tokens.bundle_count : args.tokens.count - args.first;
  if (count == 0) return;
  const bool is_short = args.tokens.longest <= BlockOf<64, 4>::kPositions;
  if (args.cache.channels == 64) {
    (is_short ? launch<BlockOf<64, 4>> : launch<BlockOf<64, 8>>)(args, count, stream);
  } else {
    (is_short ? launch<BlockOf<128, 4>> : launch<BlockOf<128, 8>>)(args, count, stream);
  }
  combine_bf16(args, 1, stream);
}

}  // namespace assay::cuda
