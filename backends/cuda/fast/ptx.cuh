// The instructions of Hopper that the fast path uses, one thin function each.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "backends/cuda/fast/shapes.h"
#include "backends/cuda/kernels/dependent_launch.cuh"

namespace assay::cuda::fast {

using bf16 = __nv_bfloat16;

__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// Cache policy for bytes that are read once a token.
__device__ inline uint64_t evict_first() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Bulk copies go past the first-level cache's queue, in which a load waits for all copies before it.
__device__ inline void barrier_init(uint32_t barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
// Makes initialised barriers known to the copy engine.
__device__ inline void barrier_publish() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// The one arrival of a phase, which ends when `bytes` have been copied.
__device__ inline void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "AGAIN_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@!p bra AGAIN_%=;\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// What this thread wrote to shared memory is before the bulk copies that are asked for after a later barrier.
__device__ inline void order_before_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}

// 16 bytes from global to shared memory, past the first-level cache. Both multiples of 16.
__device__ inline void copy_async(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ inline void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ inline uint32_t load_shared_word(uint32_t from) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from));
  return v;
}
__device__ inline void store_shared_word(uint32_t to, uint32_t v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory");
}
__device__ inline uint4 load_shared(uint32_t from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from));
  return v;
}

// 16-byte load from the second-level cache, never stale.
__device__ inline uint4 load_global(const void* from) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

// d += a b: a (16 rows, 16 k), b (16 k, 8 columns). Lane: rows lane/4 and +8, columns 2 (lane%4) and +1 of d.
__device__ inline void mma(float (&d)[4], const uint4& a, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of 16-bit numbers, transposed; lane i gives the address of row i%8 of matrix i/8.
__device__ inline uint4 load_matrices_transposed(uint32_t row) {
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(row)
               : "memory");
  return v;
}

// Waits until *at >= value; what was written before the releases that brought it there is then in the second-level
// cache, from where it must be read (__ldcg, load_global, copy_async). An acquire would empty the first-level cache
// instead.
__device__ inline void wait_until(const uint32_t* at, uint32_t value) {
  uint32_t v;
  do {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  } while (v < value);
}
__device__ inline void add_release(uint32_t* to, uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ inline uint32_t add_acquire_release(uint32_t* to, uint32_t value) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(to), "r"(value) : "memory");
  return old;
}

__device__ inline long long cycles() {
  long long v;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(v));
  return v;
}

// A word and the tag of the moment it belongs to, stored and loaded as one: who finds the tag has the word.
__device__ inline void store_tagged(uint64_t* to, uint32_t word, uint32_t tag) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(static_cast<uint64_t>(tag) << 32 | word)
               : "memory");
}
__device__ inline bool load_tagged(const uint64_t* from, uint32_t tag, uint32_t& word) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  word = static_cast<uint32_t>(v);
  return static_cast<uint32_t>(v >> 32) == tag;
}

// A word and nothing else, for places that are 0 until it is there: it is stored inverted, since no result is a NaN
// with all bits set.
__device__ inline void store_word(uint32_t* to, uint32_t word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(~word) : "memory");
}
__device__ inline bool load_word(const uint32_t* from, uint32_t& word) {
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  word = ~v;
  return v != 0;
}
__device__ inline bool load_words(const uint32_t* from, uint32_t& first, uint32_t& second) {
  uint32_t v, w;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(v), "=r"(w) : "l"(from) : "memory");
  first = ~v;
  second = ~w;
  return v != 0 && w != 0;
}
// Four neighbours, at a multiple of 16 bytes.
__device__ inline bool load_words(const uint32_t* from, uint4& words) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  words = make_uint4(~v.x, ~v.y, ~v.z, ~v.w);
  return v.x != 0 && v.y != 0 && v.z != 0 && v.w != 0;
}
// kCount times four neighbours, `stride` words apart, once all are there.
template <int kCount>
__device__ inline void wait_for_words(const uint32_t* from, int stride, uint4 (&words)[kCount]) {
  bool there[kCount] = {};
  bool all;
  do {
    all = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (!there[i]) there[i] = load_words(from + i * stride, words[i]);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) all = all && there[i];
  } while (!all);
}

// Barrier of the kThreads threads that compute (a block may have more).
__device__ inline void block_sync() { asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory"); }

// 2^x, within 2 ulp: attention's alone (attention_math.cuh).
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float round_bf16(float x) { return __bfloat162float(__float2bfloat16_rn(x)); }

}  // namespace assay::cuda::fast
