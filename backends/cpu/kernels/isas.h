// The instruction sets of this build, best first: isas_x86.cc or isas_generic.cc.
#pragma once

#include <span>
#include <string_view>

#include "backends/cpu/kernels/kernels.h"

namespace assay::cpu {

struct Isa {
  std::string_view name;
  const Kernels* kernels;
  bool (*usable)();
  std::string_view needs;  // what the processor must have
};

std::span<const Isa> isas();

}  // namespace assay::cpu
