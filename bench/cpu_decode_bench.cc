// CPU decode against the memory-read rate of the same threads in the same run, prefill, and load plus first token.
//   cpu_decode_bench [--benchmark_filter=...]      writes its checkpoints (about 1 GB each) below the temporary folder
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/cpu/cpu_model.h"
#include "backends/cpu/pool/thread_pool.h"
#include "backends/model/checkpoint/model_writer.h"
#include "backends/reference/testing/vector_case.h"
#include "tools/bandwidth/read_bandwidth.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "cpu_decode_bench: %s\n", status.message().c_str());
  std::exit(1);
}

// A dense model of at least 1 GB of weights in `dtype`.
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

std::string checkpoint_of(const model::ModelConfig& config, model::Dtype dtype) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("assay_cpu_bench_" + std::string(model::dtype_name(dtype)));
  if (std::filesystem::exists(folder + "/latest_checkpointed_iteration.txt")) return folder;
  model::CheckpointSpec spec;
  spec.model = config;
  spec.dtype = dtype;
  const Status status = model::write_checkpoint(spec, folder);
  if (!status.ok()) give_up(status);
  return folder;
}

// One open model with a cache for one sequence.
struct Loaded {
  std::unique_ptr<backend::Model> model;
  std::unique_ptr<backend::Cache> cache;
  std::vector<int32_t> blocks;

  Loaded(const model::ModelConfig& config, const std::string& checkpoint, const std::string& options, uint32_t tokens) {
    auto opened = cpu::open_cpu(config, checkpoint, options);
    if (!opened) give_up(opened.status());
    model = std::move(*opened);
    const assay_cache_spec spec{sizeof(spec), 64, tokens / 64 + 1, 0};
    auto made = model->make_cache(spec);
    if (!made) give_up(made.status());
    cache = std::move(*made);
    cache->block_size = spec.block_size;
    cache->block_count = spec.block_count;
    for (uint32_t b = 0; b < spec.block_count; ++b) blocks.push_back(static_cast<int32_t>(b));
  }

  int32_t forward(const std::vector<int32_t>& ids, uint32_t start) {
    int32_t token = 0;
    assay_run run{};
    run.ids = ids.data();
    run.count = static_cast<uint32_t>(ids.size());
    run.start = start;
    run.blocks = blocks.data();
    run.block_count = static_cast<uint32_t>(blocks.size());
    run.output_rows = 1;
    run.sampling = {1, 1, 0, 0, 0, 0};
    run.output.sampled = &token;
    const Status status = model->forward(*cache, {&run, 1}, nullptr);
    if (!status.ok()) give_up(status);
    return token;
  }
};

// Bytes of weights that one decoded token reads: everything but the word embeddings.
double bytes_a_token(const backend::Model& model, model::Dtype dtype) {
  const auto& config = model.config();
  return static_cast<double>(model.weight_bytes()) -
         static_cast<double>(config.vocab_size) * config.hidden_size * static_cast<double>(model::dtype_size(dtype));
}

void decode(benchmark::State& state, model::Dtype dtype, const char* isa) {
  const int threads = cpu::available_cores();
  const model::ModelConfig config = dense_config(dtype);
  Loaded loaded(config, checkpoint_of(config, dtype),
                R"({"isa":")" + std::string(isa) + R"(","threads":)" + std::to_string(threads) + "}", 4096);
  const double bytes = bytes_a_token(*loaded.model, dtype);
  std::vector<int32_t> ids = {1};
  uint32_t position = 0;
  double best = 1e9;
  double read = 0;
  for (auto _ : state) {
    const auto start = Clock::now();
    ids[0] = loaded.forward(ids, position++);
    const double seconds = seconds_since(start);
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
    if (position % 16 == 1) {  // interleaved: the machine may be shared
      read = std::max(read, tools::measure_read_bandwidth(static_cast<size_t>(bytes), threads, 3).best_gb_per_s);
    }
  }
  state.counters["weights_GB"] = bytes / 1e9;
  state.counters["best_GB/s"] = bytes / best / 1e9;
  state.counters["read_GB/s"] = read;
  state.counters["fraction"] = bytes / best / 1e9 / read;
  state.counters["threads"] = threads;
}

void prefill(benchmark::State& state, model::Dtype dtype) {
  const model::ModelConfig config = dense_config(dtype);
  Loaded loaded(config, checkpoint_of(config, dtype), "{}", 4096);
  const std::vector<int32_t> ids(static_cast<size_t>(state.range(0)), 7);
  double best = 1e9;
  for (auto _ : state) {
    const auto start = Clock::now();
    benchmark::DoNotOptimize(loaded.forward(ids, 0));
    best = std::min(best, seconds_since(start));
  }
  const double weights = bytes_a_token(*loaded.model, dtype) / static_cast<double>(model::dtype_size(dtype));
  state.counters["tokens/s"] = static_cast<double>(ids.size()) / best;
  state.counters["GFLOP/s"] = 2 * weights * static_cast<double>(ids.size()) / best / 1e9;
}

// Opening the licence model and computing the first token of its first prompt.
void first_token(benchmark::State& state) {
  const std::string root = std::string(ASSAY_SOURCE_DIR) + "/../shared/gold";
  auto gold = testing::read_case(root, "moe_10m_licences_b1");
  if (!gold) {
    state.SkipWithError(gold.status().message().c_str());
    return;
  }
  for (auto _ : state) {
    Loaded loaded(gold->config, gold->checkpoint, "{}", 512);
    benchmark::DoNotOptimize(loaded.forward(gold->requests[0].prompt, 0));
  }
}

// One decoded token of the licence model: the cost of operators that are too small for the memory to matter.
void small_decode(benchmark::State& state) {
  const std::string root = std::string(ASSAY_SOURCE_DIR) + "/../shared/gold";
  auto gold = testing::read_case(root, "moe_10m_licences_b1");
  if (!gold) {
    state.SkipWithError(gold.status().message().c_str());
    return;
  }
  Loaded loaded(gold->config, gold->checkpoint, R"({"threads":)" + std::to_string(state.range(0)) + "}", 4096);
  uint32_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(loaded.forward({7}, position++ % 512));
}

BENCHMARK(first_token)->Unit(benchmark::kMillisecond);
BENCHMARK(small_decode)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(decode, bf16, model::Dtype::kBfloat16, "auto")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, fp32, model::Dtype::kFloat32, "auto")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, bf16_avx2, model::Dtype::kBfloat16, "avx2")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prefill, bf16, model::Dtype::kBfloat16)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prefill, fp32, model::Dtype::kFloat32)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
