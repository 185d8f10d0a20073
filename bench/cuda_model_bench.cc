// The CUDA backend on a model with the layer shapes of Megatron-LM's 16B case and random weights: decode and prefill,
// one line a measurement, through backend::Model as an engine calls it. `assay bench` measures any model.
// Usage: cuda_model_bench [LAYERS] [OPTIONS]   27 by default; OPTIONS: JSON, those of the backend
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/cuda/cuda_model.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kBlockSize = 64;
constexpr uint32_t kPositions = 4352;  // of a sequence, a multiple of kBlockSize

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
  config.moe.experts = 64;
  config.moe.topk = 6;
  config.moe.ffn_hidden_size = 1408;
  config.moe.shared_ffn_hidden_size = 2816;
  config.moe.score = model::RouterScore::kSigmoid;
  return config;
}

// Sequences that each have blocks of their own, in a shuffled order; the argmax of the last token of each is wanted.
class Sequences {
 public:
  Sequences(backend::Model& model, uint32_t count, uint32_t longest) : model_(model), count_(count) {
    const uint32_t each = (longest + kBlockSize - 1) / kBlockSize;
    spec_ = {sizeof(spec_), kBlockSize, each * count, 0};
    for (uint32_t s = 0; s < count; ++s) {
      blocks_.emplace_back();
      for (uint32_t b = 0; b < each; ++b) blocks_.back().push_back(static_cast<int32_t>(b * count + (count - 1 - s)));
    }
  }

  Status open() {
    auto cache = model_.make_cache(spec_);
    if (!cache) return cache.status();
    cache_ = *std::move(cache);
    cache_->block_size = spec_.block_size;
    cache_->block_count = spec_.block_count;
    return {};
  }

  // Seconds of one forward over `tokens` tokens of every sequence from position `start` on.
  Result<double> forward(uint32_t tokens, uint32_t start) {
    std::vector<std::vector<int32_t>> ids(count_);
    std::vector<int32_t> argmax(count_);
    std::vector<float> logprobs(count_);
    std::vector<assay_run> runs(count_);
    for (uint32_t s = 0; s < count_; ++s) {
      for (uint32_t i = 0; i < tokens; ++i) {
        ids[s].push_back(static_cast<int32_t>((start + i + 977 * s) * 2654435761u % 131072u));
      }
      assay_run& run = runs[s];
      run.ids = ids[s].data();
      run.count = tokens;
      run.start = start;
      run.blocks = blocks_[s].data();
      run.block_count = static_cast<uint32_t>(blocks_[s].size());
      run.output_rows = 1;
      run.output.argmax = &argmax[s];
      run.output.argmax_logprobs = &logprobs[s];
    }
    const auto begin = Clock::now();
    if (Status status = model_.forward(*cache_, runs, nullptr); !status.ok()) return status;
    return seconds_since(begin);
  }

  // Median and least of `repeats`, at ascending positions; the first is not counted.
  Status time(uint32_t tokens, uint32_t start, int repeats) {
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) {
      const Result<double> time = forward(tokens, tokens == 1 ? start + static_cast<uint32_t>(i) : start);
      if (!time) return time.status();
      if (i > 0) times.push_back(*time);
    }
    std::sort(times.begin(), times.end());
    std::printf("%2u x %4u tokens from position %4u: median %8.3f ms, least %8.3f, most %8.3f of %d\n", count_, tokens,
                start, times[times.size() / 2] * 1e3, times[0] * 1e3, times.back() * 1e3, repeats);
    std::fflush(stdout);
    return {};
  }

 private:
  backend::Model& model_;
  uint32_t count_;
  assay_cache_spec spec_{};
  std::unique_ptr<backend::Cache> cache_;
  std::vector<std::vector<int32_t>> blocks_;
};

Status measure(backend::Model& model, uint32_t sequences, uint32_t longest, const auto& plan) {
  Sequences all(model, sequences, longest);
  Status status = all.open();
  for (const auto& [tokens, start, repeats] : plan) {
    if (status.ok()) status = all.time(tokens, start, repeats);
  }
  return status;
}

struct Step {
  uint32_t tokens;
  uint32_t start;
  int repeats;
};

Status run(int layers, const std::string& options) {
  const auto begin = Clock::now();
  const auto model = cuda::open_cuda(shapes(layers), "", options);
  if (!model) return model.status();
  std::printf("%d layers, %s, %.2f GB, opened in %.2f s; options %s\n", layers, (*model)->device().c_str(),
              static_cast<double>((*model)->weight_bytes()) * 1e-9, seconds_since(begin), options.c_str());
  const std::vector<Step> alone = {{1, 128, 64}, {1, 1024, 64}, {1, 4096, 64}, {128, 0, 9},
                                   {512, 0, 9},  {1024, 0, 9},  {4096, 0, 5}};
  Status status = measure(**model, 1, kPositions, alone);
  const std::vector<Step> together = {{1, 128, 32}};
  for (const uint32_t batch : {2u, 4u, 8u, 16u, 33u, 64u}) {
    if (status.ok()) status = measure(**model, batch, 256, together);
  }
  return status;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const std::string options = argc > 2 ? argv[2] : R"({"weights":"random"})";
  const assay::Status status = assay::run(argc > 1 ? std::atoi(argv[1]) : 27, options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
