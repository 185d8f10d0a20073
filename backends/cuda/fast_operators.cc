#include "backends/cuda/fast_operators.h"

namespace assay::cuda {

vendor::PrefillModel prefill_model(const model::ModelConfig& config, const Weights& weights, size_t slice) {
  vendor::PrefillModel model{.bf16 = config.arithmetic == model::Arithmetic::kBf16};
  for (const Layer& layer : weights.layers) {
    for (const Linear* linear :
         {&layer.qkv, &layer.proj, &layer.fc1, &layer.fc2, &layer.shared_fc1, &layer.shared_fc2}) {
      model.matrices.push_back(linear->weight);
    }
  }
  model.matrices.push_back(weights.output);
  model.heads.heads = config.num_attention_heads;
  model.heads.groups = config.num_query_groups;
  model.heads.channels = config.kv_channels;
  model.most_tokens = static_cast<int>(slice);
  return model;
}

Operators fast_operators(const vendor::FastPrefill& fast) {
  Operators operators;
  operators.linear = [&fast](const LinearArgs& args, cudaStream_t stream) {
    if (!fast.linear(args, stream)) linear_any(args, stream);
  };
  operators.mlps = [&fast](std::span<const MlpJob> jobs, cudaStream_t stream) {
    std::vector<MlpJob> left;
    for (const MlpJob& job : jobs) {
      if (!fast.linear(job.first.linear, stream)) {
        left.push_back(job);
        continue;
      }
      activate(job.first.activate, stream);
      if (!fast.linear(job.second, stream)) linear_any(job.second, stream);
    }
    if (!left.empty()) linear_mlps(left, stream);
  };
  return operators;
}

}  // namespace assay::cuda
