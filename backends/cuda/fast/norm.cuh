// RMSNorm of up to 8 tokens by one block, rounded to bf16 and left in shared memory in operand order.
#pragma once

#include "backends/cuda/fast/weight_stream.cuh"

namespace assay::cuda::fast {

constexpr int kOperandPad = 32;                 // elements between tokens, against bank conflicts
constexpr int kNormScratch = 2 * kHidden / 16;  // floats
constexpr int kRawStride = kSegment + 16;       // floats between segments, against bank conflicts
constexpr int kNormRaw = kHidden / kSegment * kRawStride;

__host__ __device__ constexpr int operand_stride(int k) { return k + kOperandPad; }

// y[t] = (x[t] * (1 / sqrt(dot(x, x) / n + eps))) * gamma. The dot is the one of docs/determinism.md: 16 lanes by
// k mod 16, ascending fma in blocks of 256, blocks added ascending, tree over the lanes. One half of the block (128
// threads) a token; thread b * 16 + l has lane l of block b. n = kHidden.
class RmsNorm {
 public:
  // gamma: (kHidden) fp32, constant: may be read before the kernels before have ended.
  __device__ RmsNorm(const float* gamma, float eps) : eps_(eps) {
    const int b = threadIdx.x % 128 / 16;
#pragma unroll
    for (int i = 0; i < 16; ++i) gamma_[i] = gamma[b * kSegment + i * 16 + threadIdx.x % 16];
  }

  // x: (tokens, kHidden) fp32; y: (tokens) of operand_stride(kHidden); scratch: kNormScratch floats. Ends with a
  // barrier.
  __device__ void run(const float* x, int tokens, bf16* y, float* scratch) const {
    run(tokens, y, scratch, [x](int token, int at, float(&v)[16]) {
#pragma unroll
      for (int i = 0; i < 16; ++i) v[i] = __ldcg(x + token * kHidden + at + i * 16);
    });
  }

  // The same with the rows of `ids` (tokens) of tiled embeddings.
  __device__ void run_embedded(const void* embeddings, const int32_t* ids, int tokens, bf16* y, float* scratch) const {
    run(tokens, y, scratch, [embeddings, ids](int token, int at, float(&v)[16]) {
      const int id = __ldcg(ids + token);
#pragma unroll
      for (int i = 0; i < 16; ++i) v[i] = embedded(embeddings, id, at + i * 16);
    });
  }

  // The same with x as words that may not be there yet (ptx.cuh), `stride` words from token to token.
  __device__ void run_words(const uint32_t* x, int stride, int tokens, bf16* y, float* scratch) const {
    run(tokens, y, scratch, [x, stride](int token, int at, float(&v)[16]) {
      const uint32_t* from = x + token * stride + at;
      bool there = false;
      uint32_t first;
      while (!there) there = load_word(from, first);  // little traffic while it is not there
      do {
        there = true;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          uint32_t word;
          there &= load_word(from + i * 16, word);
          v[i] = __uint_as_float(word);
        }
      } while (!there);
      __syncwarp();
    });
  }

  // The same for one token by the whole block, each thread four neighbours at a time; raw: kNormRaw floats.
  __device__ void run_words(const uint32_t* x, float* raw, bf16* y, float* scratch) const {
    constexpr int kPieces = kHidden / 4 / kThreads;
    uint4 words[kPieces];
    wait_for_words(x + threadIdx.x * 4, kThreads * 4, words);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int at = (i * kThreads + threadIdx.x) * 4;
      *reinterpret_cast<uint4*>(raw + at / kSegment * kRawStride + at % kSegment) = words[i];
    }
    block_sync();
    run(1, y, scratch, [raw](int, int at, float(&v)[16]) {
#pragma unroll
      for (int i = 0; i < 16; ++i) v[i] = raw[at / kSegment * kRawStride + at % kSegment + i * 16];
    });
  }

 private:
  template <class Load>
  __device__ void run(int tokens, bf16* y, float* scratch, const Load& load) const {
    const int half = threadIdx.x / 128;
    const int b = threadIdx.x % 128 / 16;
    const int l = threadIdx.x % 16;
    float* mine = scratch + half * (kNormScratch / 2);
    for (int first = 0; first < tokens; first += 2) {
      const int t = first + half;
      const bool works = t < tokens;
      float v[16];
      if (works) {
        load(t, b * kSegment + l, v);
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 16; ++i) sum = __fmaf_rn(v[i], v[i], sum);
        mine[b * 16 + l] = sum;
      }
      block_sync();
      if (works) {
        float total = mine[l];
#pragma unroll
        for (int i = 1; i < kHidden / kSegment; ++i) total = __fadd_rn(total, mine[i * 16 + l]);
#pragma unroll
        for (int d = 8; d > 0; d /= 2) total = __fadd_rn(total, __shfl_xor_sync(0xffffffffu, total, d));
        const float scale = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(total, static_cast<float>(kHidden)), eps_)));
        bf16* to = y + t * operand_stride(kHidden) + b * kSegment;
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          to[operand_place(i * 16 + l)] = __float2bfloat16_rn(__fmul_rn(__fmul_rn(v[i], scale), gamma_[i]));
        }
      }
      block_sync();
    }
  }

  float gamma_[16];
  float eps_;
};

// The pieces of the operand (in shared memory, operand order) for the segment that starts at k; zeros for columns
// without a token.
__device__ inline void operand_pieces(const bf16* x, int stride, int k, int tokens, uint4 (&pieces)[2 * kStages]) {
  const int g = threadIdx.x % 32 / 4;
  const uint32_t from = shared_address(x + g * stride + k + (threadIdx.x % 4) * 8);
#pragma unroll
  for (int i = 0; i < 2 * kStages; ++i) pieces[i] = g < tokens ? load_shared(from + 64 * i) : make_uint4(0, 0, 0, 0);
}

}  // namespace assay::cuda::fast
