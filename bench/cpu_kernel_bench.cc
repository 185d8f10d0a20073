// Every kernel of the CPU backend on one thread, at sizes that no cache holds, beside what memory and the multiply-add
// units of the same run allow for the bytes and flops that the kernel declares (kernel_info.h).
//   cpu_kernel_bench [isa]      auto unless told
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "backends/cpu/kernels/kernel_probes.h"
#include "bench/fma_peak.h"
#include "bench/statistics.h"
#include "tools/bandwidth/read_bandwidth.h"

namespace assay::bench {
namespace {

constexpr size_t kBytes = size_t{128} << 20;  // of each measurement's working set, about
constexpr int kRounds = 5;                    // the fastest counts

struct Size {
  const char* what;
  cpu::ProbeSpec spec;
};

// As the kernels are used: one token and a packed batch, heads of 128 channels, segments of 4096 logits.
std::vector<Size> sizes_of(const cpu::KernelInfo& info, cpu::Number number) {
  const auto spec = [&](size_t rows, size_t cols, size_t tokens, size_t items) {
    return cpu::ProbeSpec{
        .kernel = info.name, .shape = {.rows = rows, .cols = cols, .tokens = tokens, .number = number}, .items = items};
  };
  const size_t size = cpu::number_size(number);
  if (info.name == "matmul") {
    const size_t rows = kBytes / size / 4096;
    return {{"1 token", spec(rows, 4096, 1, 1)}, {"128 tokens", spec(1024, 4096, 128, 128)}};
  }
  if (info.name == "attend") {  // in the cache: what one split of a head is
    return {{"1 query", spec(1, 128, 256, 1)}, {"8 queries", spec(8, 128, 256, 8)}};
  }
  if (info.name == "combine") return {{"4 splits", spec(4, 128, 1, kBytes / 4 / 5 / 128)}};
  if (info.name == "pack") return {{"4096 columns", spec(1, 4096, 2048, 2048)}};
  const size_t cols = info.name == "rotate" ? 128 : 4096;
  return {{cols == 128 ? "heads of 128" : "vectors of 4096", spec(1, cols, 1, kBytes / 12 / cols)}};
}

// Seconds of the fastest round.
double time_of(const cpu::Kernels& kernels, const cpu::Probe& probe) {
  double best = 1e9;
  for (int round = 0; round <= kRounds; ++round) {  // the first one touches the memory
    if (probe.prepare) probe.prepare();
    const double seconds = seconds_of([&] { probe.run(kernels, {0, probe.items}, {0, probe.outputs}); });
    if (round > 0) best = std::min(best, seconds);
  }
  return best;
}

struct Measured {
  const cpu::KernelInfo* info;
  const char* form;
  const char* size;
  cpu::Work work;  // of all calls together
  double seconds;
};

// What the machine can do, the best of what was seen: it may be shared.
struct Peak {
  double bytes_per_s = 0;
  double flops_per_s = 0;

  void look() {
    bytes_per_s = std::max(bytes_per_s, tools::measure_read_bandwidth(kBytes, 1, 2).best_gb_per_s * 1e9);
    flops_per_s = std::max(flops_per_s, 2 * measure_fma_rate(1));
  }
};

Measured measure(const cpu::Kernels& kernels, const cpu::KernelInfo& info, const Size& size, const char* form) {
  cpu::KernelShape shape = size.spec.shape;
  const bool together = info.name == "matmul" || info.name == "attend" || info.name == "pack";  // one call for all
  if (info.name == "matmul") shape.tokens = size.spec.items;
  const double calls = together ? 1 : static_cast<double>(size.spec.items);
  const cpu::Work work = info.work(shape);
  return {
      &info, form, size.what, {work.bytes * calls, work.flops * calls}, time_of(kernels, *cpu::make_probe(size.spec))};
}

void report(const cpu::Kernels& kernels) {
  constexpr const char* kForms[] = {"fp32", "bf16", "fp16"};
  std::vector<Measured> all;
  Peak peak;
  for (const cpu::KernelInfo& info : cpu::kernel_table()) {
    for (size_t form = 0; form < info.forms; ++form) {
      for (const Size& size : sizes_of(info, static_cast<cpu::Number>(form))) {
        peak.look();
        all.push_back(measure(kernels, info, size, info.forms > 1 ? kForms[form] : "-"));
      }
    }
  }
  std::printf("%s, one thread: memory is read at %.1f GB/s, peak %.0f GFLOP/s\n", std::string(kernels.name).c_str(),
              peak.bytes_per_s / 1e9, peak.flops_per_s / 1e9);
  std::printf(
      "of peak: the time that bytes or flops need at these rates, whichever is longer, of the time taken;\n"
      "more than 100 %% where a cache holds the data\n");
  std::printf("%-14s %-5s %-16s %5s %9s %9s %9s\n", "kernel", "form", "size", "level", "GB/s", "GFLOP/s", "of peak");
  for (const Measured& m : all) {
    const double least = std::max(m.work.bytes / peak.bytes_per_s, m.work.flops / peak.flops_per_s);
    std::printf("%-14s %-5s %-16s    L%d %9.2f %9.2f %7.0f %%\n", std::string(m.info->name).c_str(), m.form, m.size,
                m.info->level, m.work.bytes / m.seconds / 1e9, m.work.flops / m.seconds / 1e9, 100 * least / m.seconds);
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  using namespace assay;
  const auto kernels = cpu::select_kernels(argc > 1 ? argv[1] : "auto");
  if (!kernels) {
    std::fprintf(stderr, "cpu_kernel_bench: %s\n", kernels.status().message().c_str());
    return 2;
  }
  bench::report(**kernels);
  return 0;
}
