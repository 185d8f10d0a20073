// A small problem for every kernel of the table, cut up as callers cut it: for the test of the declared levels and for
// benches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cpu/kernels/kernel_info.h"

namespace assay::cpu {

struct Range {
  size_t begin = 0;
  size_t end = 0;
};

// What a kernel computes for some vectors that do not know of each other (inputs of a matmul, queries, heads,
// segments): the items.
struct Probe {
  size_t items = 1;
  size_t outputs = 1;  // of an item, among which threads may cut; 1: the item is computed whole
  // Gives what a kernel changes in place its first values again; null: there is nothing like that.
  std::function<void()> prepare = {};
  // Computes outputs `part` of the items `some`.
  std::function<void(const Kernels&, Range some, Range part)> run;
  std::function<std::vector<float>(size_t item)> result;  // everything that was computed for it
};

struct ProbeSpec {
  std::string_view kernel;  // name in the table
  KernelShape shape;        // tokens of matmul and pack: `items`
  size_t items = 1;
  size_t shift = 0;         // floats by which inputs and outputs lie off the beginning of their memory
  uint32_t neighbours = 0;  // seed of the items of the second half; those of the first half are always the same
};

// nullopt: there is no problem for this kernel.
std::optional<Probe> make_probe(const ProbeSpec& spec);

}  // namespace assay::cpu
