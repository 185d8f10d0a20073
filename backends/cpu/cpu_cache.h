// Paged keys and values: (layers, blocks, groups, block_size, channels), fp32 or bf16.
#pragma once

#include <cstddef>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/memory.h"
#include "backends/reference/border/model.h"

namespace assay::cpu {

struct CpuCache : backend::Cache {
  Region keys;
  Region values;
  Number number = Number::kFloat32;
  size_t groups = 0;
  size_t channels = 0;

  // Byte offset of one position's vector of one group.
  size_t offset(size_t layer, const assay_run& run, size_t group, size_t position) const {
    const auto block = static_cast<size_t>(run.blocks[position / block_size]);
    const size_t head = (layer * block_count + block) * groups + group;
    return (head * block_size + position % block_size) * channels * number_size(number);
  }
};

}  // namespace assay::cpu
