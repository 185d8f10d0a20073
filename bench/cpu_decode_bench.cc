// CPU decode against the memory-read rate of the same threads in the same run, and load plus first token.
//   cpu_decode_bench [--benchmark_filter=...]      writes its checkpoints (about 1 GB each) below the temporary folder
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "backends/cpu/pool/thread_pool.h"
#include "backends/reference/testing/vector_case.h"
#include "bench/bench_model.h"
#include "tools/bandwidth/read_bandwidth.h"

namespace assay::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void decode(benchmark::State& state, model::Dtype dtype, const char* isa) {
  const int threads = cpu::available_cores();
  const model::ModelConfig config = dense_config(dtype);
  OpenModel loaded(config, checkpoint_of("", config, dtype),
                   R"({"isa":")" + std::string(isa) + R"(","threads":)" + std::to_string(threads) + "}", 1, 4096);
  const double bytes = bytes_read(loaded.model(), dtype);
  std::vector<int32_t> ids = {1};
  uint32_t position = 0;
  double best = 1e9;
  double read = 0;
  for (auto _ : state) {
    const auto start = Clock::now();
    ids = loaded.forward(ids, 1, position++);
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

// Opening the licence model and computing the first token of its first prompt.
void first_token(benchmark::State& state) {
  const std::string root = std::string(ASSAY_SOURCE_DIR) + "/../shared/gold";
  auto gold = testing::read_case(root, "moe_10m_licences_b1");
  if (!gold) {
    state.SkipWithError(gold.status().message().c_str());
    return;
  }
  for (auto _ : state) {
    OpenModel loaded(gold->config, gold->checkpoint, "{}", 1, 512);
    benchmark::DoNotOptimize(loaded.forward(gold->requests[0].prompt, 1, 0));
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
  OpenModel loaded(gold->config, gold->checkpoint, R"({"threads":)" + std::to_string(state.range(0)) + "}", 1, 4096);
  uint32_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(loaded.forward({7}, 1, position++ % 512));
}

BENCHMARK(first_token)->Unit(benchmark::kMillisecond);
BENCHMARK(small_decode)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(decode, bf16, model::Dtype::kBfloat16, "auto")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, fp32, model::Dtype::kFloat32, "auto")->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, bf16_avx2, model::Dtype::kBfloat16, "avx2")->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::bench

BENCHMARK_MAIN();
