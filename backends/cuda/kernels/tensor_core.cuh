// The one instruction of the bf16 dot (linear.h).
#pragma once

#include <cstdint>

namespace assay::cuda {

// d += a b: a 16 rows x 16 of K (one lane's part of a tile, types.h), b 16 of K x 8 tokens. A lane holds of d the rows
// lane / 4 (d[0], d[1]) and 8 further (d[2], d[3]), the tokens 2 (lane % 4) and the next.
__device__ inline void mma(float (&d)[4], const uint4& a, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// Loads that stay where they are written, so that all of them are under way before the first mma needs one.
__device__ inline uint4 load_ahead(const uint4* from) {  // of weights, which no kernel writes
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}
__device__ inline uint32_t load_ahead(const uint32_t* from) {
  uint32_t v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}

}  // namespace assay::cuda
