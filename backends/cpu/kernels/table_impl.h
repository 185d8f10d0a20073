// Fills the table of one instruction set.
#pragma once

#include "backends/cpu/kernels/attend_impl.h"
#include "backends/cpu/kernels/elementwise_impl.h"
#include "backends/cpu/kernels/matmul_impl.h"
#include "backends/cpu/kernels/packed_impl.h"

namespace assay::cpu {

template <class V, class W>
void matmul_either(const MatmulArgs& args) {
  args.packed != nullptr ? matmul_packed<V, W>(args) : matmul<V, W>(args);
}

template <class V>
constexpr Kernels make_kernels(std::string_view name) {
  return {name,
          {matmul_either<V, LoadFloat32<V>>, matmul_either<V, LoadBfloat16<V>>, matmul_either<V, LoadFloat16<V>>},
          pack<V>,
          normalise<V>,
          activate<V>,
          {attend<V, LoadFloat32<V>>, attend<V, LoadBfloat16<V>>, attend<V, LoadFloat16<V>>},
          combine<V>,
          add<V>,
          add_scaled<V>,
          round_floats<V>,
          rotate<V>,
          {widen<V, LoadFloat32<V>>, widen<V, LoadBfloat16<V>>, widen<V, LoadFloat16<V>>},
          narrow_bf16<V>,
          scan_segment<V>};
}

}  // namespace assay::cpu
