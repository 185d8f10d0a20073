#include "bench/bench_model.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "backends/cpu/cpu_model.h"
#include "backends/model/checkpoint/model_writer.h"

namespace assay::bench {
namespace {

constexpr uint32_t kBlockSize = 64;

}  // namespace

void give_up(const Status& status) {
  std::fprintf(stderr, "bench: %s\n", status.message().c_str());
  std::exit(1);
}

model::ModelConfig dense_config(model::Dtype dtype) {
  model::ModelConfig config;
  config.num_layers = dtype == model::Dtype::kFloat32 ? 6 : 12;
  config.hidden_size = 2048;
  config.ffn_hidden_size = 5504;
  config.num_attention_heads = 16;
  config.num_query_groups = 8;
  config.kv_channels = 128;
  config.vocab_size = 16384;
  config.max_position_embeddings = 4096;
  config.norm = model::Norm::kRmsNorm;
  config.activation = model::Activation::kSwiglu;
  config.linear_bias = false;
  config.tied_embeddings = false;
  config.arithmetic = dtype == model::Dtype::kFloat32 ? model::Arithmetic::kFp32 : model::Arithmetic::kBf16;
  config.moe_layers.assign(static_cast<size_t>(config.num_layers), false);
  return config;
}

model::ModelConfig moe_config(model::Dtype dtype) {
  model::ModelConfig config = dense_config(dtype);
  config.num_layers = 8;
  config.hidden_size = 1024;
  config.num_attention_heads = 8;
  config.num_query_groups = 4;
  config.moe.experts = 32;
  config.moe.topk = 4;
  config.moe.ffn_hidden_size = 896;
  config.moe_layers.assign(static_cast<size_t>(config.num_layers), true);
  return config;
}

std::string checkpoint_of(const std::string& name, const model::ModelConfig& config, model::Dtype dtype) {
  std::string folder =
      std::filesystem::temp_directory_path() / ("assay_cpu_bench_" + name + std::string(model::dtype_name(dtype)));
  if (std::filesystem::exists(folder + "/latest_checkpointed_iteration.txt")) return folder;
  model::CheckpointSpec spec;
  spec.model = config;
  spec.dtype = dtype;
  const Status status = model::write_checkpoint(spec, folder);
  if (!status.ok()) give_up(status);
  return folder;
}

double bytes_read(const backend::Model& model, model::Dtype dtype) {
  const model::ModelConfig& config = model.config();
  return static_cast<double>(model.weight_bytes()) -
         static_cast<double>(config.vocab_size) * config.hidden_size * static_cast<double>(model::dtype_size(dtype));
}

double multiply_adds_a_token(const backend::Model& model, model::Dtype dtype) {
  const model::ModelConfig& config = model.config();
  double left_out = static_cast<double>(config.vocab_size) * config.hidden_size;  // of the output layer
  for (const bool moe : config.moe_layers) {
    if (moe) left_out += 3.0 * config.hidden_size * config.moe.ffn_hidden_size * (config.moe.experts - config.moe.topk);
  }
  return bytes_read(model, dtype) / static_cast<double>(model::dtype_size(dtype)) - left_out;
}

Work work_of(const model::ModelConfig& config, model::Dtype dtype) {
  const double hidden = config.hidden_size;
  const int rows = (2 * config.num_attention_heads + 2 * config.num_query_groups) * config.kv_channels;  // with proj
  double elements = hidden * config.vocab_size;
  for (const bool moe : config.moe_layers) {
    elements += hidden * rows;
    elements += moe ? hidden * (config.moe.experts + 3.0 * config.moe.topk * config.moe.ffn_hidden_size)
                    : 3 * hidden * config.ffn_hidden_size;
  }
  return {elements * static_cast<double>(model::dtype_size(dtype)), elements};
}

OpenModel::OpenModel(const model::ModelConfig& config, const std::string& checkpoint, const std::string& options,
                     uint32_t sequences, uint32_t tokens) {
  auto opened = cpu::open_cpu(config, checkpoint, options);
  if (!opened) give_up(opened.status());
  model_ = std::move(*opened);
  const uint32_t each = tokens / kBlockSize + 1;
  const assay_cache_spec spec{sizeof(spec), kBlockSize, sequences * each, 0};
  auto made = model_->make_cache(spec);
  if (!made) give_up(made.status());
  cache_ = std::move(*made);
  cache_->block_size = spec.block_size;
  cache_->block_count = spec.block_count;
  for (uint32_t s = 0; s < sequences; ++s) {
    blocks_.emplace_back();
    for (uint32_t b = 0; b < each; ++b) blocks_.back().push_back(static_cast<int32_t>(s * each + b));
  }
}

std::vector<int32_t> OpenModel::forward(const std::vector<int32_t>& ids, uint32_t sequences, uint32_t start) {
  const auto count = static_cast<uint32_t>(ids.size() / sequences);
  std::vector<int32_t> sampled(sequences);
  std::vector<assay_run> runs(sequences);
  for (uint32_t s = 0; s < sequences; ++s) {
    assay_run& run = runs[s];
    run = {};
    run.ids = ids.data() + size_t{s} * count;
    run.count = count;
    run.start = start;
    run.blocks = blocks_[s].data();
    run.block_count = static_cast<uint32_t>(blocks_[s].size());
    run.output_rows = 1;
    run.sampling = {1, 1, 0, 0, 0, 0};
    run.output.sampled = &sampled[s];
  }
  const Status status = model_->forward(*cache_, runs, nullptr);
  if (!status.ok()) give_up(status);
  return sampled;
}

Scores OpenModel::score(const std::vector<int32_t>& ids) {
  std::vector<int32_t> next(ids.begin() + 1, ids.end());
  next.push_back(ids.front());
  Scores scores{std::vector<int32_t>(ids.size()), std::vector<float>(ids.size()), std::vector<float>(ids.size())};
  assay_run run = {};
  run.ids = ids.data();
  run.count = static_cast<uint32_t>(ids.size());
  run.blocks = blocks_[0].data();
  run.block_count = static_cast<uint32_t>(blocks_[0].size());
  run.output_rows = run.count;
  run.targets = next.data();
  run.output.argmax = scores.argmax.data();
  run.output.argmax_logprobs = scores.argmax_logprobs.data();
  run.output.target_logprobs = scores.next_logprobs.data();
  const Status status = model_->forward(*cache_, {&run, 1}, nullptr);
  if (!status.ok()) give_up(status);
  return scores;
}

}  // namespace assay::bench
