// Decode steps of the 16B mixture of experts on one device, with random weights that the device itself fills: GB/s of
// every kernel (declared bytes / time), milliseconds of a step, and where the persistent kernel's time goes.
//
//   cuda_decode_bench kernels|step|phases|batch|sweep ...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "backends/cuda/fast/kernel_info.h"
#include "backends/cuda/fast/testing/random_model.h"
#include "bench/read_all.cuh"

namespace {

using namespace assay::cuda::fast;

#define CHECK(x) check((x), #x)
void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// Milliseconds of `work` on the stream.
float time_of(cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin, stream));
  work();
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaEventSynchronize(end));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  return ms;
}

// Median of five rounds of the mean milliseconds of `replays` replays of what `work` gives to the stream.
double time_graph(
    RandomModel& model, const std::function<void()>& work, int replays, const std::function<void()>& before = [] {}) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(model.stream(), cudaStreamCaptureModeGlobal));
  work();
  CHECK(cudaStreamEndCapture(model.stream(), &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<float> all;
  for (int round = 0; round < 6; ++round) {
    before();
    const float ms = time_of(model.stream(), [&] {
      for (int i = 0; i < replays; ++i) CHECK(cudaGraphLaunch(exec, model.stream()));
    });
    if (round > 0) all.push_back(ms / static_cast<float>(replays));
  }
  std::sort(all.begin(), all.end());
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return all[2];
}

// Best of four sweeps over the experts' first layers of the whole model (20 GB).
double bandwidth(RandomModel& model) {
  const RandomShape& s = model.shape();
  const size_t bytes = size_t{2} * s.experts * 2 * s.width * kHidden;
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const float ms = time_of(model.stream(), [&] {
      for (const LayerWeights& layer : model.model().layers) {
        if (layer.experts.experts == 0) continue;
        assay::bench::read_all<<<132 * 4, 512, 0, model.stream()>>>(
            static_cast<const uint4*>(layer.experts.fc1), bytes / 16, reinterpret_cast<uint32_t*>(model.scratch()));
      }
    });
    best = std::max(best, bytes * static_cast<double>(s.layers - s.dense_layers) / (ms * 1e-3) / 1e9);
  }
  return best;
}

void kernels(RandomModel& bench, double gbs) {
  const ModelWeights& m = bench.model();
  const StepArgs& args = bench.args();
  const StepBuffers& b = args.buffers;
  const int layers = static_cast<int>(m.layers.size());
  bench.start(1, 128);
  bench.step_kernels(false);  // leaves sensible buffers behind
  std::printf("%-15s %4s %9s %9s | us and GB/s (%% of %.0f): apart | overlapped\n", "kernel", "at", "MB", "floor us",
              gbs);
  using Run = std::function<cudaError_t(int, const Launch&)>;
  const auto row = [&](const char* kernel, int position, int count, const Run& run) {
    const StepPoint point = {.position = position, .active = bench.shape().topk};
    const size_t bytes = find_kernel(kernel).bytes(m, m.layers.back(), point);
    std::printf("%-15s %4d %9.2f %9.2f", kernel, position, bytes / 1e6, bytes / gbs / 1e3);
    for (const bool overlapped : {false, true}) {
      const auto all = [&] {
        for (int i = 0; i < count; ++i) CHECK(run(i, {bench.stream(), overlapped}));
      };
      const double us = time_graph(bench, all, 10) * 1e3 / count;
      std::printf(" | %7.2f %5.0f (%3.0f%%)", us, bytes / us / 1e3, bytes / us / 10 / gbs);
    }
    std::printf("\n");
  };
  row("norm_linear", 128, layers, [&](int i, const Launch& how) {
    return norm_linear({.x = b.x,
                        .gamma = m.layers[i].attention_gamma,
                        .eps = m.eps,
                        .weight = m.layers[i].qkv,
                        .rows = 3 * kHidden,
                        .tokens = 1,
                        .y = b.qkv},
                       how);
  });
  for (const int position : {128, 4095}) {
    bench.start(1, position);
    row("attention", position, layers, [&](int i, const Launch& how) {
      CacheView cache = args.cache;
      cache.keys = static_cast<char*>(cache.keys) + i * args.layer_bytes;
      cache.values = static_cast<char*>(cache.values) + i * args.layer_bytes;
      return attention({.qkv = b.qkv,
                        .rotary = m.rotary,
                        .positions = args.positions,
                        .cache = cache,
                        .groups = m.groups,
                        .heads_per_group = 1,
                        .tokens = 1,
                        .splits = args.splits,
                        .results = b.splits,
                        .tickets = b.counters + 2,
                        .y = b.attended},
                       how);
    });
  }
  row("linear_residual", 128, layers, [&](int i, const Launch& how) {
    return linear_residual(
        {.a = b.attended, .weight = m.layers[i].projection, .rows = kHidden, .tokens = 1, .x = bench.scratch()}, how);
  });
  // The router's flag of the step above stays up, so the experts are those of that step's last layer.
  const auto experts = [&](int i, float* x) {
    return ExpertsArgs{.weights = m.layers[i].experts,
                       .gamma = m.layers[i].mlp_gamma,
                       .eps = m.eps,
                       .tokens = 1,
                       .x = x,
                       .logits = b.router_logits,
                       .done = b.counters,
                       .inner = b.inner,
                       .shared_inner = b.shared_inner};
  };
  const int dense = bench.shape().dense_layers;
  row("experts_up", 128, layers - dense,
      [&](int i, const Launch& how) { return experts_up(experts(i + dense, b.x), how); });
  row("experts_down", 128, layers - dense,
      [&](int i, const Launch& how) { return experts_down(experts(i + dense, bench.scratch()), how); });
  row("head", 128, 8, [&](int, const Launch& how) {
    return head({.x = b.x,
                 .gamma = m.final_gamma,
                 .eps = m.eps,
                 .weight = m.output,
                 .vocabulary = m.vocabulary,
                 .tokens = 1,
                 .logits = args.logits},
                how);
  });
}

// Milliseconds of a persistent step by the units in flight.
void sweep(RandomModel& bench, double gbs) {
  constexpr int kReplays = 16;
  for (const int position : {128, 1024, 4096}) {
    const auto start = [&] {
      bench.start(1, position);
      bench.args().splits = (position + kReplays) / kSplit + 1;
    };
    start();
    bench.args().advance = true;
    for (const int in_flight : {3, 4, 5, 6, 7, 8, 12}) {
      const PersistentArgs own = {.in_flight = in_flight};
      const double ms = time_graph(
          bench, [&] { bench.step_persistent(own); }, kReplays, start);
      const size_t bytes =
          step_bytes(bench.model(), {.position = position + kReplays / 2, .active = bench.shape().topk});
      std::printf("persistent at %4d, %d in flight: %.3f ms (%.1f%%)\n", position, own.in_flight, ms,
                  bytes / ms / 1e4 / gbs);
    }
  }
}

// way: 0 kernels one after the other, 1 overlapped, 2 persistent.
void step(RandomModel& bench, double gbs, int tokens, int position, int way) {
  constexpr int kReplays = 32;
  const auto start = [&] {
    bench.start(tokens, position);
    bench.args().splits = (position + kReplays) / kSplit + 1;
  };
  start();
  bench.args().advance = true;
  const auto work = [&] {
    if (way == 2) return bench.step_persistent();
    bench.step_kernels(way == 1);
  };
  const double ms = time_graph(bench, work, kReplays, start);
  const char* names[] = {"kernels apart", "kernels overlapped", "persistent"};
  std::printf("step of %d at %4d, %-18s: %.3f ms", tokens, position, names[way], ms);
  if (tokens == 1) {
    const size_t bytes = step_bytes(bench.model(), {.position = position + kReplays / 2, .active = bench.shape().topk});
    std::printf(", %.0f GB/s (%.1f%%)", bytes / ms / 1e6, bytes / ms / 1e4 / gbs);
  }
  std::printf("\n");
}

void phases(RandomModel& bench, int position) {
  constexpr int kBlocks = 132;
  constexpr int kSteps = 8;
  assay::cuda::DeviceBuffer<long long> times(kBlocks * 16);
  bench.start(1, position);
  bench.args().advance = false;
  bench.step_persistent();
  CHECK(cudaMemsetAsync(times.data(), 0, times.size() * sizeof(long long), bench.stream()));
  for (int i = 0; i < kSteps; ++i) bench.step_persistent({.times = times.data()});
  const std::vector<long long> t = assay::cuda::download(times);
  const char* names[] = {"qkv", "attention", "projection", "up", "down", "head", "pick"};
  std::printf(
      "persistent at %d, thousand cycles (of a layer up to down): work mean, most | wait before it mean, least\n",
      position);
  for (int p = 0; p < 7; ++p) {
    const double scale = 1e-3 / kSteps / (p < 5 ? bench.shape().layers : 1);
    double work = 0, most = 0, wait = 0, least = 1e30;
    for (int block = 0; block < kBlocks; ++block) {
      const double w = scale * static_cast<double>(t[block * 16 + 2 * p]);
      const double v = scale * static_cast<double>(t[block * 16 + 2 * p + 1]);
      work += w / kBlocks;
      most = std::max(most, w);
      wait += v / kBlocks;
      least = std::min(least, v);
    }
    std::printf("%-11s %8.2f %8.2f | %8.2f %8.2f\n", names[p], work, most, wait, least);
  }
}

}  // namespace

int main(int argc, char** argv) {
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  RandomModel bench({.dense_layers = 0});
  const double gbs = bandwidth(bench);
  std::printf("%s, read bandwidth %.0f GB/s\n", properties.name, gbs);
  for (int i = 1; i < argc; ++i) {
    const std::string what = argv[i];
    if (what == "kernels") kernels(bench, gbs);
    if (what == "sweep") sweep(bench, gbs);
    for (const int position : {128, 1024, 4096}) {
      for (int way = 0; way < 3 && what == "step"; ++way) step(bench, gbs, 1, position, way);
      if (what == "phases") phases(bench, position);
    }
    for (const int tokens : {2, 4, 8}) {
      for (int way = 1; way < 3 && what == "batch"; ++way) step(bench, gbs, tokens, 128, way);
    }
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}
