// The writing warpgroup of linear_hopper.cu.
#pragma once

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/hopper/block.cuh"
#include "backends/cuda/kernels/linear_result.cuh"

namespace assay::cuda {

// The activation of what a gated matrix gave: four neurons a thread.
__device__ __forceinline__ void write_gated(const HopperPart& part, const HopperItem& item, const float* results,
                                            int thread) {
  const int quads = part.item_tiles * 2;
  const ActivateArgs& a = part.activate;
  const int first_tile = item.row_block * part.item_tiles;
  for (int i = thread; i < item.count * quads; i += kWarpgroup) {
    const int quad = i % quads;
    const int neuron = (first_tile * 2 + quad) * 4;
    if (neuron >= a.width) continue;
    const int token = item_token(part, item, i / quads);
    const int row = quad / 2 * kTile + quad % 2 * 4;
    const float4 gate = *reinterpret_cast<const float4*>(results + staged(i / quads, row));
    const float4 up = *reinterpret_cast<const float4*>(results + staged(i / quads, row + 8));
    float v[4] = {activated(a.activation, gate.x, up.x), activated(a.activation, gate.y, up.y),
                  activated(a.activation, gate.z, up.z), activated(a.activation, gate.w, up.w)};
    const float factor = a.factor == nullptr ? 1.0f : a.factor[token];  // v * 1 is v
    uint32_t bits[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) bits[n] = arithmetic::to_bf16(v[n] * factor);
    const int64_t place = part.sorted_inner ? item.begin + i / quads : token;
    auto* to = static_cast<Bfloat16*>(a.y.data) + place * a.y.stride + neuron;
    *reinterpret_cast<uint2*>(to) = make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
  }
}

// Four rows a thread.
__device__ __forceinline__ void write_rows(const HopperPart& part, const HopperItem& item, const float* results,
                                           int thread) {
  const int quads = part.item_tiles * 4;
  const LinearArgs& a = part.linear;
  const int first_tile = item.row_block * part.item_tiles;
  const bool whole = !a.weight.gated && a.weight.rows % 4 == 0 && a.y_stride % 4 == 0;
  for (int i = thread; i < item.count * quads; i += kWarpgroup) {
    const int quad = i % quads;
    const int token = item_token(part, item, i / quads);
    const float4 dot = *reinterpret_cast<const float4*>(results + staged(i / quads, quad * 4));
    const float dots[4] = {dot.x, dot.y, dot.z, dot.w};
    if (whole) {
      const int row = first_tile * kTile + quad * 4;
      if (row >= a.weight.rows) continue;
      float r[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) r[n] = result_of(a, item.expert, row + n, token, dots[n]);
      auto* y = reinterpret_cast<float4*>(a.y + int64_t{token} * a.y_stride + row);
      if (a.onto) {
        const float4 old = *y;
        *y = make_float4(old.x + r[0], old.y + r[1], old.z + r[2], old.w + r[3]);
      } else {
        *y = make_float4(r[0], r[1], r[2], r[3]);
      }
      continue;
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int row = tiled_row(a.weight, first_tile + quad / 4, quad % 4 * 4 + n);
      const bool inside = a.weight.gated ? (first_tile + quad / 4) * kTile < a.weight.rows : row < a.weight.rows;
      if (inside) write_result(a, item.expert, row, token, dots[n]);
    }
  }
}

template <class Blocks>
__device__ __forceinline__ void write_items(const HopperWork& work, HopperShared& shared) {
  const int thread = static_cast<int>(threadIdx.x) - kWarpgroup;
  wait_for_kernel_before();
  uint32_t phase = 0;
  int entry = 0;
  for (int index = first_item<Blocks>(); index < shared.plan.first[work.entries]; index += item_step<Blocks>()) {
    const HopperItem item = item_at<Blocks>(work, shared.plan, index, entry);
    const HopperPart& part = work.parts[item.part];
    barrier_wait(shared_address(&shared.results_full), phase);
    phase ^= 1u;
    if (part.activate.y.data != nullptr) {
      write_gated(part, item, shared.results, thread);
    } else {
      write_rows(part, item, shared.results, thread);
    }
    __syncwarp();
    if (thread % 32 == 0) barrier_arrive(shared_address(&shared.results_empty));
  }
}

}  // namespace assay::cuda
