// The CUDA backend on a model with the layer shapes of Megatron-LM's 16B case: loading, prefill and decode. Writes a
// checkpoint of random weights (bf16) with the number of layers given, loads it, and prints one line a measurement.
// Usage: cuda_model_bench FOLDER [LAYERS]   FOLDER: for the checkpoint, removed at the end; LAYERS: 4 by default
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/cuda/cuda_model.h"
#include "backends/model/checkpoint/model_writer.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kBlockSize = 64;
constexpr int kRepeats = 5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The shapes of that case, `layers` of its 27.
model::ModelConfig shapes(int layers) {
  model::ModelConfig config;
  config.num_layers = layers;
  config.hidden_size = 2048;
  config.ffn_hidden_size = 10944;
  config.num_attention_heads = config.num_query_groups = 16;
  config.kv_channels = 128;
  config.vocab_size = 131072;
  config.max_position_embeddings = 8192;
  config.rotary_base = 1000000;
  config.norm = model::Norm::kRmsNorm;
  config.activation = model::Activation::kSwiglu;
  config.linear_bias = false;
  config.tied_embeddings = false;
  config.arithmetic = model::Arithmetic::kBf16;
  config.moe_layers.assign(static_cast<size_t>(layers), true);
  config.moe_layers[0] = false;
  config.moe.experts = 64;
  config.moe.topk = 6;
  config.moe.ffn_hidden_size = 1408;
  config.moe.shared_ffn_hidden_size = 2816;
  config.moe.score = model::RouterScore::kSigmoid;
  return config;
}

// One sequence in blocks 0, 1, 2 ...; the argmax of its last token is wanted.
class Sequence {
 public:
  Sequence(backend::Model& model, uint32_t longest) : model_(model) {
    spec_ = {sizeof(spec_), kBlockSize, longest / kBlockSize + 1, 0};
    for (uint32_t b = 0; b < spec_.block_count; ++b) blocks_.push_back(static_cast<int32_t>(b));
  }

  Status open() {
    auto cache = model_.make_cache(spec_);
    if (!cache) return cache.status();
    cache_ = *std::move(cache);
    cache_->block_size = spec_.block_size;
    cache_->block_count = spec_.block_count;
    return {};
  }

  // Seconds of one forward over `count` tokens from position `start`.
  Result<double> forward(uint32_t count, uint32_t start) {
    std::vector<int32_t> ids(count);
    for (uint32_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((start + i) * 2654435761u % 131072u);
    int32_t argmax = -1;
    assay_run run{};
    run.ids = ids.data();
    run.count = count;
    run.start = start;
    run.blocks = blocks_.data();
    run.block_count = spec_.block_count;
    run.output_rows = 1;
    run.output.argmax = &argmax;
    const auto begin = Clock::now();
    if (Status status = model_.forward(*cache_, {&run, 1}, nullptr); !status.ok()) return status;
    return seconds_since(begin);
  }

 private:
  backend::Model& model_;
  assay_cache_spec spec_{};
  std::unique_ptr<backend::Cache> cache_;
  std::vector<int32_t> blocks_;
};

Status measure(backend::Model& model) {
  Sequence sequence(model, 4224);
  if (Status status = sequence.open(); !status.ok()) return status;
  for (const uint32_t tokens : {1u, 8u, 128u, 1024u, 4096u}) {
    const uint32_t start = tokens == 1 ? 128 : 0;  // one token: a decode step
    std::vector<double> times;
    for (int i = 0; i <= kRepeats; ++i) {
      Result<double> time = sequence.forward(tokens, start);
      if (!time) return time.status();
      if (i > 0) times.push_back(*time);  // the first warms up
    }
    std::sort(times.begin(), times.end());
    std::printf("%5u tokens from position %3u: median %8.3f ms, least %8.3f ms of %d\n", tokens, start,
                times[times.size() / 2] * 1e3, times[0] * 1e3, kRepeats);
  }
  return {};
}

Status run(const std::string& folder, int layers) {
  model::CheckpointSpec spec;
  spec.model = shapes(layers);
  if (Status status = model::write_checkpoint(spec, folder); !status.ok()) return status;
  for (int i = 0; i < 2; ++i) {
    const auto begin = Clock::now();
    auto model = cuda::open_cuda(spec.model, folder, "{}");
    if (!model) return model.status();
    const double time = seconds_since(begin);
    const double gigabytes = static_cast<double>((*model)->weight_bytes()) * 1e-9;
    std::printf("%d layers, %s: %.2f GB loaded in %.2f s, %.2f GB/s\n", layers, (*model)->device().c_str(), gigabytes,
                time, gigabytes / time);
    if (i == 0) continue;
    if (Status status = measure(**model); !status.ok()) return status;
  }
  return {};
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cuda_model_bench FOLDER [LAYERS]\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/cuda_model_bench";
  const assay::Status status = assay::run(folder, argc > 2 ? std::atoi(argv[2]) : 4);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
