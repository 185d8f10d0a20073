#include "backends/cuda/fast/kernel_info.h"

#include <cassert>
#include <cstring>

namespace assay::cuda::fast {
namespace {

size_t matrix(int rows, int cols) { return static_cast<size_t>(rows) * static_cast<size_t>(cols) * 2; }

constexpr KernelInfo kTable[] = {
    {"embed_rows", false,
     [](const ModelWeights&, const LayerWeights&, const StepPoint& p) { return matrix(p.tokens, kHidden); }},
    {"norm_linear", true,
     [](const ModelWeights& m, const LayerWeights&, const StepPoint&) {
       return matrix(m.groups * (m.heads_per_group + 2) * kHeadSize, kHidden);
     }},
    {"attention", true,
     [](const ModelWeights& m, const LayerWeights&, const StepPoint& p) {
       return static_cast<size_t>(p.tokens) * attention_bytes(m.groups, p.position);
     }},
    {"linear_residual", true,
     [](const ModelWeights&, const LayerWeights&, const StepPoint&) { return matrix(kHidden, kHidden); }},
    {"experts_up", true,
     [](const ModelWeights&, const LayerWeights& l, const StepPoint& p) { return up_bytes(l.experts, p.active); }},
    {"experts_down", true,
     [](const ModelWeights&, const LayerWeights& l, const StepPoint& p) { return down_bytes(l.experts, p.active); }},
    {"head", false,
     [](const ModelWeights& m, const LayerWeights&, const StepPoint&) { return matrix(m.vocabulary, kHidden); }},
    {"pick", false,
     [](const ModelWeights& m, const LayerWeights&, const StepPoint& p) {
       return static_cast<size_t>(p.tokens) * static_cast<size_t>(m.vocabulary) * sizeof(float);
     }},
};

}  // namespace

std::span<const KernelInfo> kernel_table() { return kTable; }

const KernelInfo& find_kernel(const char* name) {
  for (const KernelInfo& kernel : kTable) {
    if (std::strcmp(kernel.name, name) == 0) return kernel;
  }
  assert(false && "a kernel of the table");
  return kTable[0];
}

size_t step_bytes(const ModelWeights& model, const StepPoint& point) {
  size_t bytes = 0;
  for (const KernelInfo& kernel : kTable) {
    if (!kernel.of_layer) bytes += kernel.bytes(model, {}, point);
    for (size_t i = 0; kernel.of_layer && i < model.layers.size(); ++i) {
      bytes += kernel.bytes(model, model.layers[i], point);
    }
  }
  return bytes;
}

}  // namespace assay::cuda::fast
