#include "backends/cuda/fast_decode.h"

#include <algorithm>

#include "backends/cuda/fast/supports.h"

namespace assay::cuda {
namespace {

constexpr int kSplits = 16;         // 4,096 positions, to begin with
constexpr size_t kMostGraphs = 64;  // kept at a time

fast::ExpertWeights experts_of(const model::ModelConfig& config, const Layer& layer) {
  fast::ExpertWeights w;
  const bool mixture = layer.router.weight.data != nullptr;
  const Linear& fc1 = mixture ? layer.shared_fc1 : layer.fc1;
  const Linear& fc2 = mixture ? layer.shared_fc2 : layer.fc2;
  w.shared_fc1 = fc1.weight.data;
  w.shared_fc2 = fc2.weight.data;
  w.shared_width = fc2.weight.cols;
  if (!mixture) return w;
  w.router = layer.router.weight.data;
  w.bias = layer.expert_bias;
  w.fc1 = layer.expert_fc1.weight.data;
  w.fc2 = layer.expert_fc2.weight.data;
  w.experts = config.moe.experts;
  w.topk = config.moe.topk;
  w.width = config.moe.ffn_hidden_size;
  w.scaling_factor = static_cast<float>(config.moe.scaling_factor);
  return w;
}

fast::ModelWeights model_of(const model::ModelConfig& config, const Weights& weights) {
  fast::ModelWeights model;
  for (const Layer& layer : weights.layers) {
    model.layers.push_back({.attention_gamma = layer.attention_norm.gamma,
                            .qkv = layer.qkv.weight.data,
                            .projection = layer.proj.weight.data,
                            .mlp_gamma = layer.mlp_norm.gamma,
                            .experts = experts_of(config, layer)});
  }
  model.groups = config.num_query_groups;
  model.heads_per_group = config.num_attention_heads / config.num_query_groups;
  model.eps = static_cast<float>(config.norm_epsilon);
  model.rounded_router = !config.moe.router_fp32;
  model.final_gamma = weights.final_norm.gamma;
  model.output = weights.output.data;
  model.embeddings = weights.word_embeddings.data;
  model.vocabulary = config.vocab_size;
  return model;
}

}  // namespace

std::unique_ptr<FastDecode> FastDecode::open(const model::ModelConfig& config, const Weights& weights) {
  if (!fast::supports(config)) return nullptr;
  std::unique_ptr<FastDecode> made(new FastDecode());
  made->model_ = model_of(config, weights);
  made->args_.model = &made->model_;
  return made;
}

bool FastDecode::takes(std::span<const assay_run> runs, const CacheView& cache) {
  constexpr int kBlockRows = 16;
  return runs.size() <= kMost && cache.block_size % kBlockRows == 0 &&
         std::ranges::all_of(runs, [](const assay_run& run) { return run.count == 1; });
}

DecodedRows FastDecode::step(const CacheView& cache, Workspace& w, RotaryTable& rotary, const Stream& stream) {
  uint32_t longest = 0;
  for (const Token& token : w.tokens) longest = std::max(longest, token.run->start + 1);
  const int splits = (static_cast<int>(longest) + fast::kSplit - 1) / fast::kSplit;
  rotary.cover(longest, stream);
  if (model_.rotary != rotary.data()) graphs_.clear();
  model_.rotary = rotary.data();
  reserve(splits, model_.vocabulary, stream);
  gather(w, cache.block_size, stream);
  args_.cache = {.keys = cache.keys,
                 .values = cache.values,
                 .blocks = ints_.data() + kBlocks,
                 .tables = ints_.data() + 3 * kMost,
                 .block_size = cache.block_size};
  args_.layer_bytes = static_cast<size_t>(cache.block_count) * static_cast<size_t>(cache.groups) *
                      static_cast<size_t>(cache.block_size) * fast::kHeadSize * 2;
  args_.tokens = static_cast<int>(w.tokens.size());
  args_.splits = splits;
  args_.chosen = w.moe_layers > 0 ? w.experts.data() : nullptr;
  args_.margins = w.moe_layers > 0 ? w.margins.data() : nullptr;
  args_.routing_stride = static_cast<int>(w.slice);
  if (w.clock == nullptr) {
    launch(stream);
  } else {
    launch_marked(w, stream);
  }
  return {logits_.data(), facts_.data()};
}

// Scratch for so many splits; what was captured is of no use once it grows.
void FastDecode::reserve(int splits, int vocabulary, const Stream& stream) {
  if (splits <= most_splits_) return;
  stream.wait();
  graphs_.clear();
  most_splits_ = std::max({splits, kSplits, 2 * most_splits_});
  const fast::StepShape shape = fast::step_shape(model_, kMost, most_splits_ * fast::kSplit);
  memory_ = DeviceBuffer<std::byte>();
  memory_ = DeviceBuffer<std::byte>(fast::step_memory(shape));
  check(cudaMemsetAsync(memory_.data(), 0, memory_.size(), stream.get()), "cudaMemsetAsync");
  args_.buffers = fast::step_buffers(shape, memory_.data());
  logits_.reserve(kMost * static_cast<size_t>(vocabulary));
  facts_.reserve(kMost);
  args_.logits = logits_.data();
  args_.facts = facts_.data();
}

// Ids, positions, targets and block tables to the device, without waiting for them.
void FastDecode::gather(const Workspace& w, int block_size, const Stream& stream) {
  const auto blocks_of = [&](const assay_run& run) {
    return (static_cast<size_t>(run.start) + static_cast<size_t>(block_size)) / static_cast<size_t>(block_size);
  };
  size_t count = kBlocks;
  for (const Token& token : w.tokens) count += blocks_of(*token.run);
  if (ints_.size() < count) {
    stream.wait();
    graphs_.clear();
    ints_.reserve(2 * count);
    host_ints_.reserve(2 * count);
    args_.ids = ints_.data();
    args_.positions = ints_.data() + kMost;
    args_.targets = ints_.data() + 2 * kMost;
  } else {
    copied_.wait();
  }
  int32_t* const host = host_ints_.data();
  size_t table = 0;
  for (size_t t = 0; t < w.tokens.size(); ++t) {
    const assay_run& run = *w.tokens[t].run;
    host[t] = run.ids[0];
    host[kMost + t] = static_cast<int32_t>(run.start);
    host[2 * kMost + t] = run.targets != nullptr && run.output_rows > 0 ? run.targets[0] : -1;
    host[3 * kMost + t] = static_cast<int32_t>(table);
    std::copy_n(run.blocks, blocks_of(run), host + kBlocks + table);
    table += blocks_of(run);
  }
  check(cudaMemcpyAsync(ints_.data(), host, count * sizeof(int32_t), cudaMemcpyHostToDevice, stream.get()),
        "cudaMemcpyAsync");
  copied_.record(stream);
}

// One kernel after the other, with the clock's marks between them.
void FastDecode::launch_marked(const Workspace& w, const Stream& stream) {
  fast::StepMark mark;
  mark.call = [](void* context, const char* kernel, double bytes) {
    static_cast<const Workspace*>(context)->mark(kernel, bytes);
  };
  mark.context = const_cast<Workspace*>(&w);
  mark.position = static_cast<int>(w.tokens.front().run->start);
  check(fast::decode_step(args_, {.stream = stream.get(), .overlapped = false, .mark = &mark}), "decode_step");
}

void FastDecode::launch(const Stream& stream) {
  if (persistent_ && fast::prefers_persistent(args_) && fast::persistent_takes(args_)) {
    const cudaError_t code = fast::persistent_step(args_, {}, stream.get());
    persistent_ = code != cudaErrorCooperativeLaunchTooLarge;  // a part of a device
    if (persistent_) return check(code, "persistent_step");
    cudaGetLastError();
  }
  const Key key(args_.tokens, args_.splits, args_.cache.keys, args_.cache.values, args_.cache.block_size,
                args_.layer_bytes);
  if (graphs_.size() >= kMostGraphs && graphs_.count(key) == 0) graphs_.clear();
  auto found = graphs_.find(key);
  if (found == graphs_.end()) {
    found =
        graphs_
            .emplace(key, Graph::capture(stream,
                                         [&] {
                                           check(fast::decode_step(args_, {.stream = stream.get(), .overlapped = true}),
                                                 "decode_step");
                                         }))
            .first;
  }
  found->second.launch(stream);
}

}  // namespace assay::cuda
