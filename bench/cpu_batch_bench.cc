// Prefill and batched decode of the CPU backend, beside the rate of multiply-adds of the same run.
//   cpu_batch_bench [rounds]      5 rounds unless told; writes its checkpoints (1 to 1.5 GB each) once
// Every round measures everything in turn; printed are the fastest of each, and the median of the rounds' ratios.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "backends/cpu/pool/thread_pool.h"
#include "bench/bench_model.h"
#include "bench/fma_peak.h"
#include "bench/statistics.h"

namespace assay::bench {
namespace {

constexpr uint32_t kMostRows = 16;
constexpr uint32_t kPast = 128;  // positions before the first decoded token
constexpr uint32_t kSteps = 4;   // decoded tokens of one measurement
constexpr uint32_t kPrompts[] = {128, 512};
constexpr uint32_t kBatches[] = {1, 4, kMostRows};

std::vector<int32_t> some_ids(size_t count, int32_t vocab, uint32_t seed) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    seed = seed * 1664525u + 1013904223u;
    id = static_cast<int32_t>((seed >> 8) % static_cast<uint32_t>(vocab));
  }
  return ids;
}

// Tokens a second, one entry a round.
struct Measured {
  std::map<uint32_t, std::vector<double>> prefill;  // by tokens of the prompt
  std::map<uint32_t, std::vector<double>> decode;   // by rows
  double fma_rate = 0;                              // the best
};

Measured measure(OpenModel& open, int rounds, int threads) {
  const int32_t vocab = open.model().config().vocab_size;
  Measured found;
  open.forward(some_ids(size_t{kMostRows} * kPast, vocab, 1), kMostRows, 0);
  for (int round = 0; round < rounds; ++round) {
    for (const uint32_t rows : kBatches) {
      std::vector<int32_t> ids = some_ids(rows, vocab, 7);
      const double seconds = seconds_of([&] {
        for (uint32_t step = 0; step < kSteps; ++step) ids = open.forward(ids, rows, kPast + step);
      });
      found.decode[rows].push_back(rows * kSteps / seconds);
    }
    found.fma_rate = std::max(found.fma_rate, measure_fma_rate(threads));
    for (const uint32_t tokens : kPrompts) {
      const std::vector<int32_t> ids = some_ids(tokens, vocab, 3);
      found.prefill[tokens].push_back(tokens / seconds_of([&] { open.forward(ids, 1, 0); }));
    }
    // The prompt's positions are overwritten: give sequence 0 its past again.
    open.forward(some_ids(kPast, vocab, 1), 1, 0);
  }
  return found;
}

void report(const std::string& name, OpenModel& open, model::Dtype dtype, const Measured& found) {
  const double work = multiply_adds_a_token(open.model(), dtype);
  const auto best = [](const std::vector<double>& rates) { return *std::max_element(rates.begin(), rates.end()); };
  std::printf("%s: %.2f GB of weights, %.0f M multiply-adds a token of a prompt; peak %.0f GFLOP/s\n", name.c_str(),
              bytes_read(open.model(), dtype) / 1e9, work / 1e6, 2 * found.fma_rate / 1e9);
  for (const auto& [tokens, rates] : found.prefill) {
    const double flops = 2 * work * best(rates);
    std::printf("  prefill of %4u tokens   %8.1f tokens/s  (median %8.1f)  %4.0f GFLOP/s, %3.0f %% of the peak\n",
                tokens, best(rates), median(rates), flops / 1e9, 50 * flops / found.fma_rate);
  }
  for (const auto& [rows, rates] : found.decode) {
    std::vector<double> ratios;
    for (size_t i = 0; i < rates.size(); ++i) ratios.push_back(rates[i] / found.decode.at(1)[i]);
    std::printf(
        "  decode of %2u rows        %8.1f tokens/s  (median %8.1f)  %5.2f times one row (median of rounds), "
        "%5.2f (fastest)\n",
        rows, best(rates), median(rates), median(ratios), best(rates) / best(found.decode.at(1)));
  }
  std::fflush(stdout);
}

void run(const std::string& name, const model::ModelConfig& config, model::Dtype dtype, int rounds) {
  const int threads = cpu::available_cores();
  const std::string folder = checkpoint_of(config.any_moe() ? "moe_" : "", config, dtype);
  OpenModel open(config, folder, "{}", kMostRows, 512);
  report(name, open, dtype, measure(open, rounds, threads));
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  using namespace assay;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  if (rounds < 1 || argc > 2) {
    std::fprintf(stderr, "usage: cpu_batch_bench [rounds >= 1]\n");
    return 2;
  }
  bench::run("dense bf16", bench::dense_config(model::Dtype::kBfloat16), model::Dtype::kBfloat16, rounds);
  bench::run("dense fp32", bench::dense_config(model::Dtype::kFloat32), model::Dtype::kFloat32, rounds);
  bench::run("mixture bf16", bench::moe_config(model::Dtype::kBfloat16), model::Dtype::kBfloat16, rounds);
  return 0;
}
