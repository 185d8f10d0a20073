#include "bench/fma_peak.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace assay::bench {
namespace {

constexpr int kChains = 12;  // more than a unit's latency times the units, fewer than the registers
constexpr long kRounds = 2'000'000;
constexpr int kRepeats = 8;  // the best counts: threads that start on one core take turns for a while

[[gnu::target("avx512f")]] float run_wide() {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 factor = _mm512_set1_ps(0.5f);
  for (long i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm512_fmadd_ps(sums[c], factor, factor);
  }
  __m512 total = sums[0];
  for (int c = 1; c < kChains; ++c) total = _mm512_add_ps(total, sums[c]);
  return _mm512_cvtss_f32(total);
}

[[gnu::target("avx2,fma")]] float run_narrow() {
  __m256 sums[kChains];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 factor = _mm256_set1_ps(0.5f);
  for (long i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm256_fmadd_ps(sums[c], factor, factor);
  }
  __m256 total = sums[0];
  for (int c = 1; c < kChains; ++c) total = _mm256_add_ps(total, sums[c]);
  return _mm256_cvtss_f32(total);
}

}  // namespace

double measure_fma_rate(int threads) {
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  std::atomic<float> used = 0;  // so that no loop can be left out
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    all.reserve(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t) all.emplace_back([&] { used = wide ? run_wide() : run_narrow(); });
    for (std::thread& thread : all) thread.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best,
                    static_cast<double>(threads) * static_cast<double>(kRounds) * kChains * (wide ? 16 : 8) / seconds);
  }
  return best;
}

}  // namespace assay::bench
