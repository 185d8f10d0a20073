#include "backends/cuda/workspace.h"

#include <algorithm>

#include "backends/cuda/kernels/routing.h"

namespace assay::cuda {

void PassInts::upload(const Stream& stream) {
  const size_t count = host_.size();
  if (device_.size() < count) {
    stream.wait();
    device_.reserve(count * 2);
  }
  Slot& slot = slots_[next_++ % slots_.size()];
  if (slot.used) slot.copied.wait();
  slot.values.reserve(device_.size());
  std::copy(host_.begin(), host_.end(), slot.values.data());
  check(cudaMemcpyAsync(device_.data(), slot.values.data(), count * sizeof(int32_t), cudaMemcpyHostToDevice,
                        stream.get()),
        "cudaMemcpyAsync");
  slot.copied.record(stream);
  slot.used = true;
}

Workspace::Workspace(const model::ModelConfig& config, size_t most_tokens) : slice(most_tokens) {
  const bool bf16 = config.arithmetic == model::Arithmetic::kBf16;
  const size_t rows = slice;
  const auto hidden = static_cast<size_t>(config.hidden_size);
  const int heads = config.num_attention_heads * config.kv_channels;
  x = DeviceBuffer<float>(rows * hidden);
  projected = DeviceBuffer<float>(rows * hidden);
  normed = InputRows(rows, config.hidden_size, bf16);
  qkv = DeviceBuffer<float>(rows * static_cast<size_t>(heads + 2 * config.num_query_groups * config.kv_channels));
  queries = DeviceBuffer<float>(rows * static_cast<size_t>(heads));
  attended = InputRows(rows, heads, bf16);

  const bool mixture = config.any_moe();
  const model::MoeConfig& moe = config.moe;
  const size_t slots = mixture ? rows * static_cast<size_t>(moe.topk) : rows;
  int widest = std::max(config.ffn_hidden_size, mixture ? moe.shared_ffn_hidden_size : 0);
  if (mixture) widest = std::max(widest, moe.ffn_hidden_size);
  const size_t parts = config.activation == model::Activation::kSwiglu ? 2 : 1;
  fc1 = DeviceBuffer<float>(slots * parts * static_cast<size_t>(widest));
  inner = InputRows(slots, widest, bf16);
  if (!mixture) return;
  sorted = InputRows(bf16 ? slots : 0, config.hidden_size, bf16);
  shared_inner = InputRows(rows, moe.shared_ffn_hidden_size, bf16);
  moe_layers = static_cast<size_t>(std::count(config.moe_layers.begin(), config.moe_layers.end(), true));
  router_logits = DeviceBuffer<float>(rows * static_cast<size_t>(moe.experts));
  experts = DeviceBuffer<uint16_t>(moe_layers * slots);
  margins = DeviceBuffer<float>(moe_layers * rows);
  factors = DeviceBuffer<float>(slots);
  groups = DeviceBuffer<int32_t>(static_cast<size_t>(group_ints(static_cast<int>(slots), moe.experts)));
  expert_out = DeviceBuffer<float>(slots * hidden);
  gates = DeviceBuffer<float>(rows);
}

Workspace make_workspace(const model::ModelConfig& config, size_t slice) {
  if (slice != 0) return Workspace(config, slice);
  constexpr size_t kMost = 4096;
  constexpr size_t kLeast = 256;
  for (slice = kMost; slice > kLeast; slice /= 2) {
    try {
      return Workspace(config, slice);
    } catch (const CudaError& error) {
      if (error.code() != cudaErrorMemoryAllocation) throw;
    }
  }
  return Workspace(config, kLeast);
}

}  // namespace assay::cuda
