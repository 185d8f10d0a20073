// Linear layers, experts and what lies between them at the shapes of the 16B mixture, with random weights that the
// device itself fills: time, TFLOP/s and GB/s (declared bytes / time) of every kernel, beside the read bandwidth
// measured in the same run.
//
//   cuda_linear_bench TOKENS ...        such as 64 128 1024 4096
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/linear_any.h"
#include "backends/cuda/kernels/routing.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/stream.h"
#include "bench/read_all.cuh"

namespace {

using namespace assay::cuda;
namespace model = assay::model;

constexpr int kHidden = 2048;
constexpr int kExperts = 64;
constexpr int kTopk = 6;
constexpr int kWidth = 1408;
constexpr int kShared = 2816;
constexpr int kDense = 10944;
constexpr int kVocabulary = 131072;
constexpr int kLayers = 2;  // used in turn, so that no weight is found in the second-level cache

__device__ float uniform(uint64_t i, uint64_t seed) {
  uint64_t x = i * 0x9e3779b97f4a7c15ull + seed;
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(x))) * (1.0f / 2147483648.0f);
}

__global__ void fill_bf16(uint16_t* to, size_t count, float scale, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    to[i] = static_cast<uint16_t>(__float_as_uint(uniform(i, seed) * scale) >> 16);
  }
}

__global__ void fill_float(float* to, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    to[i] = uniform(i, seed);
  }
}

DeviceBuffer<uint16_t> random_bf16(size_t count, uint64_t seed) {
  DeviceBuffer<uint16_t> buffer(count);
  fill_bf16<<<2048, 256>>>(buffer.data(), count, 0.02f, seed);
  return buffer;
}

DeviceBuffer<float> random_floats(size_t count, uint64_t seed) {
  DeviceBuffer<float> buffer(count);
  fill_float<<<512, 256>>>(buffer.data(), count, seed);
  return buffer;
}

// `count` matrices (rows, cols), one after the other.
struct Weight {
  Weight(int rows, int cols, int count, uint64_t seed, bool gated = false)
      : memory(random_bf16(static_cast<size_t>(count) * rows * cols, seed)), matrix{memory.data(),     rows, cols,
                                                                                    Number::kBfloat16, true, gated} {}
  DeviceBuffer<uint16_t> memory;
  Matrix matrix;
};

struct BenchLayer {
  explicit BenchLayer(uint64_t s)
      : qkv(3 * kHidden, kHidden, 1, s),
        projection(kHidden, kHidden, 1, s + 1),
        router(kExperts, kHidden, 1, s + 2),
        fc1(2 * kWidth, kHidden, kExperts, s + 3, true),
        fc2(kHidden, kWidth, kExperts, s + 4),
        shared_fc1(2 * kShared, kHidden, 1, s + 5, true),
        shared_fc2(kHidden, kShared, 1, s + 6),
        dense_fc1(2 * kDense, kHidden, 1, s + 7, true),
        dense_fc2(kHidden, kDense, 1, s + 8) {}
  Weight qkv, projection, router, fc1, fc2, shared_fc1, shared_fc2, dense_fc1, dense_fc2;
};

class Bench {
 public:
  explicit Bench(int most_tokens)
      : head_(kVocabulary, kHidden, 1, 99),
        x_(random_bf16(static_cast<size_t>(most_tokens) * kHidden, 7)),
        attended_(random_bf16(static_cast<size_t>(most_tokens) * kHidden, 8)),
        residual_(random_floats(static_cast<size_t>(most_tokens) * kHidden, 9)),
        gamma_(random_floats(kHidden, 10)),
        random_logits_(random_floats(static_cast<size_t>(most_tokens) * kExperts, 11)),
        logits_(random_floats(static_cast<size_t>(most_tokens) * kExperts, 12)),
        y_(random_floats(std::max(static_cast<size_t>(most_tokens) * kTopk * kHidden, size_t{1} << 26), 13)),
        shared_y_(random_floats(static_cast<size_t>(most_tokens) * kHidden, 14)),
        inner_(random_bf16(static_cast<size_t>(most_tokens) * std::max(kTopk * kWidth, kDense), 15)),
        sorted_(random_bf16(static_cast<size_t>(most_tokens) * kTopk * kHidden, 17)),
        shared_inner_(random_bf16(static_cast<size_t>(most_tokens) * kShared, 16)),
        chosen_(static_cast<size_t>(most_tokens) * kTopk),
        factors_(static_cast<size_t>(most_tokens) * kTopk),
        margins_(static_cast<size_t>(most_tokens)),
        groups_(static_cast<size_t>(group_ints(most_tokens * kTopk, kExperts))) {
    for (int l = 0; l < kLayers; ++l) layers_.emplace_back(100 * static_cast<uint64_t>(l));
    moe_.experts = kExperts;
    moe_.topk = kTopk;
    moe_.score = model::RouterScore::kSigmoid;
    gbs_ = bandwidth();
    std::printf("read bandwidth %.0f GB/s\n", gbs_);
  }

  void measure(int tokens) {
    tokens_ = tokens;
    choose(random_logits_.data());
    const Groups groups = group();
    std::vector<uint16_t> chosen = download(chosen_);
    std::vector<int> counts(kExperts);
    for (int s = 0; s < tokens * kTopk; ++s) ++counts[chosen[static_cast<size_t>(s)]];
    const auto used = static_cast<double>(kExperts - std::count(counts.begin(), counts.end(), 0));
    const double n = tokens;
    const double slots = n * kTopk;
    const double fc1_bytes = used * 2 * kWidth * kHidden * 2 + slots * kWidth * 2;
    const double fc2_bytes = used * kWidth * kHidden * 2 + slots * kHidden * 4;
    const double shared1_size = 2.0 * kShared * kHidden;
    const double shared2_size = 1.0 * kShared * kHidden;
    std::printf("\n%d tokens, %g experts of %d .. %d tokens\n", tokens, used,
                *std::min_element(counts.begin(), counts.end()), *std::max_element(counts.begin(), counts.end()));
    std::printf("%-24s %10s %9s %9s %6s\n", "kernel", "us", "TFLOP/s", "GB/s", "%");
    const auto dense = [&](const char* what, Weight BenchLayer::*weight, const void* x,
                           void (*f)(const LinearArgs&, cudaStream_t)) {
      const Matrix& m = (layers_[0].*weight).matrix;
      const double size = 1.0 * m.rows * m.cols;
      row(what, 2 * size * n, 2 * size + n * m.rows * 4.0,
          [&](int l) { f(plain((layers_[l].*weight).matrix, x), stream_.get()); });
    };
    dense("qkv", &BenchLayer::qkv, x_.data(), linear_any);
    dense("projection", &BenchLayer::projection, attended_.data(), linear_any);
    dense("router", &BenchLayer::router, x_.data(), linear_any);
    if (tokens <= 256) {
      row("head", 2.0 * kVocabulary * kHidden * n, 2.0 * kVocabulary * kHidden + 4.0 * n * kVocabulary,
          [&](int) { linear_any(plain(head_.matrix, x_.data()), stream_.get()); });
    }
    row("choose", 0, n * kExperts * 4, [&](int) { choose(random_logits_.data()); });
    row("group", 0, slots * 2, [&](int) { group(); });
    const double fc1_flops = 4 * slots * kWidth * kHidden;
    const double fc2_flops = 2 * slots * kWidth * kHidden;
    const LinearJob probe = shared1(layers_[0]).job;
    if (hopper_takes({&probe, 1})) {
      row("sort rows", 0, slots * kHidden * 2 + n * kHidden * 2, [&](int) { sort(groups); });
      row("experts fc1, by slot", fc1_flops, fc1_bytes, [&](int l) { jobs({experts1(layers_[l], groups, false)}, 1); });
      for (const int together : {1, 2, 4}) {
        std::printf("blocks that share what they read: %d\n", together);
        const auto alone = [&](const char* what, Weight BenchLayer::*weight) {
          const Matrix& m = (layers_[0].*weight).matrix;
          const double size = 1.0 * m.rows * m.cols;
          row(what, 2 * size * n, 2 * size + n * m.rows * 4.0, [&](int l) {
            HopperJob job;
            job.job.linear = plain((layers_[l].*weight).matrix, x_.data());
            jobs({job}, together);
          });
        };
        alone("qkv", &BenchLayer::qkv);
        alone("projection", &BenchLayer::projection);
        row("experts fc1", fc1_flops, fc1_bytes, [&](int l) { jobs({experts1(layers_[l], groups, true)}, together); });
        row("experts fc1 + shared", fc1_flops + 2 * n * shared1_size, fc1_bytes + 2 * shared1_size, [&](int l) {
          jobs({experts1(layers_[l], groups, true), shared1(layers_[l])}, together);
        });
        row("experts fc2 + shared", fc2_flops + 2 * n * shared2_size, fc2_bytes + 2 * shared2_size, [&](int l) {
          jobs({experts2(layers_[l], groups), shared2(layers_[l])}, together);
        });
      }
      std::printf("as chosen\n");
    }
    row("MLPs of a layer", fc1_flops + fc2_flops + 2 * n * (shared1_size + shared2_size),
        fc1_bytes + fc2_bytes + 2 * (shared1_size + shared2_size), [&](int l) { mlps(layers_[l], groups); });
    row("dense MLP", 6 * n * kDense * kHidden, 6.0 * kDense * kHidden, [&](int l) {
      HopperJob second;
      second.job.linear = plain(layers_[l].dense_fc2.matrix, inner_.data());
      const MlpJob job = mlp(gated(layers_[l].dense_fc1, inner_.data(), kDense), second);
      linear_mlps({&job, 1}, stream_.get());
    });
    row("add experts, norm", 0, slots * kHidden * 4 + n * kHidden * 14, [&](int) { sum(); });
    row("norm", 0, n * kHidden * 6, [&](int) { normalise(norm_args(), stream_.get()); });
    row("mixture of a layer", fc1_flops + fc2_flops + 2 * n * (shared1_size + shared2_size),
        fc1_bytes + fc2_bytes + 2 * (shared1_size + shared2_size), [&](int l) {
          normalise(norm_args(), stream_.get());
          linear_any(plain(layers_[l].router.matrix, attended_.data(), logits_.data()), stream_.get());
          choose(logits_.data());
          mlps(layers_[l], group());
          sum();
        });
  }

 private:
  double bandwidth() {
    double best = 0;
    const Matrix& m = head_.matrix;
    Event begin, end;
    for (int round = 0; round < 4; ++round) {
      begin.record(stream_);
      for (int i = 0; i < 8; ++i) {
        assay::bench::read_all<<<132 * 4, 512, 0, stream_.get()>>>(static_cast<const uint4*>(m.data),
                                                                   static_cast<size_t>(m.bytes()) / 16,
                                                                   reinterpret_cast<uint32_t*>(y_.data()));
      }
      end.record(stream_);
      end.wait();
      best = std::max(best, 8.0 * static_cast<double>(m.bytes()) / end.since(begin) / 1e6);
    }
    return best;
  }

  LinearArgs plain(const Matrix& weight, const void* x, float* y = nullptr) {
    LinearArgs a;
    a.weight = weight;
    a.x = {const_cast<void*>(x), weight.cols, true};
    a.y = y == nullptr ? y_.data() : y;
    a.y_stride = weight.rows;
    a.tokens = tokens_;
    return a;
  }

  HopperJob gated(const Weight& w, void* inner, int width) {
    HopperJob job;
    job.job.linear = plain(w.matrix, x_.data());
    job.job.activate.fc1 = y_.data();
    job.job.activate.y = {inner, width, true};
    job.job.activate.tokens = tokens_;
    job.job.activate.width = width;
    return job;
  }
  // sorted: x is in the order of the groups.
  HopperJob experts1(const BenchLayer& l, const Groups& groups, bool sorted) {
    HopperJob job = gated(l.fc1, inner_.data(), kWidth);
    if (sorted) job.job.linear.x.data = sorted_.data();
    job.job.linear.x_divisor = kTopk;
    job.job.linear.tokens = job.job.activate.tokens = tokens_ * kTopk;
    job.job.linear.groups = &groups;
    job.job.activate.factor = factors_.data();
    job.sorted_x = sorted;
    job.sorted_inner = true;
    return job;
  }
  HopperJob experts2(const BenchLayer& l, const Groups& groups) {
    HopperJob job;
    job.job.linear = plain(l.fc2.matrix, inner_.data());
    job.job.linear.tokens = tokens_ * kTopk;
    job.job.linear.groups = &groups;
    job.sorted_x = true;
    return job;
  }
  HopperJob shared1(const BenchLayer& l) { return gated(l.shared_fc1, shared_inner_.data(), kShared); }
  HopperJob shared2(const BenchLayer& l) {
    HopperJob job;
    job.job.linear = plain(l.shared_fc2.matrix, shared_inner_.data(), shared_y_.data());
    return job;
  }
  MlpJob mlp(const HopperJob& first, const HopperJob& second) {
    MlpJob job{first.job, second.job.linear, {}};
    if (first.job.linear.groups != nullptr) job.sorted = {sorted_.data(), kHidden, true};
    return job;
  }
  void mlps(const BenchLayer& l, const Groups& groups) {
    const MlpJob all[] = {mlp(experts1(l, groups, false), experts2(l, groups)), mlp(shared1(l), shared2(l))};
    linear_mlps(all, stream_.get());
  }
  void jobs(const std::vector<HopperJob>& all, int together) { linear_hopper(all, stream_.get(), together); }

  ChooseArgs choice(const float* logits) {
    ChooseArgs args{.moe = &moe_, .logits = logits};
    args.tokens = tokens_;
    args.experts = chosen_.data();
    args.factors = factors_.data();
    args.margins = margins_.data();
    return args;
  }
  void choose(const float* logits) { choose_experts(choice(logits), stream_.get()); }
  Groups group() {
    return group_slots(
        {.chosen = chosen_.data(), .slots = tokens_ * kTopk, .experts = kExperts, .storage = groups_.data()},
        stream_.get());
  }
  void sort(const Groups& groups) {
    sort_rows({{x_.data(), kHidden, true}, kTopk, groups.order, tokens_ * kTopk, {sorted_.data(), kHidden, true}},
              stream_.get());
  }
  void sum() {
    AddExpertsArgs args{.experts = y_.data(), .shared = shared_y_.data()};
    args.x = residual_.data();
    args.tokens = tokens_;
    args.hidden = kHidden;
    args.topk = kTopk;
    const NormArgs next = norm_args();
    add_experts(args, &next, stream_.get());
  }
  NormArgs norm_args() {
    NormArgs args{.x = residual_.data(), .gamma = gamma_.data()};
    args.y = {attended_.data(), kHidden, true};
    args.tokens = tokens_;
    args.width = kHidden;
    args.epsilon = 1e-5f;
    return args;
  }

  // Median of five replays of a graph of `kRuns` runs.
  void row(const char* what, double flops, double bytes, const std::function<void(int)>& run) {
    constexpr int kRuns = 8;
    run(0);
    check(cudaStreamSynchronize(stream_.get()), what);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    for (int i = 0; i < kRuns; ++i) run(i % kLayers);
    check(cudaStreamEndCapture(stream_.get(), &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    std::vector<double> all;
    Event begin, end;
    for (int round = 0; round < 6; ++round) {
      begin.record(stream_);
      check(cudaGraphLaunch(exec, stream_.get()), "cudaGraphLaunch");
      end.record(stream_);
      end.wait();
      if (round > 0) all.push_back(end.since(begin) * 1e3 / kRuns);
    }
    std::sort(all.begin(), all.end());
    check(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    const double us = all[2];
    std::printf("%-24s %10.2f %9.1f %9.0f %6.1f\n", what, us, flops / us / 1e6, bytes / us / 1e3,
                bytes / us / 10 / gbs_);
  }

  Stream stream_;
  std::vector<BenchLayer> layers_;
  Weight head_;
  DeviceBuffer<uint16_t> x_, attended_;
  DeviceBuffer<float> residual_, gamma_, random_logits_, logits_, y_, shared_y_;
  DeviceBuffer<uint16_t> inner_, sorted_, shared_inner_, chosen_;
  DeviceBuffer<float> factors_, margins_;
  DeviceBuffer<int32_t> groups_;
  model::MoeConfig moe_;
  double gbs_ = 0;
  int tokens_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> tokens;
  for (int i = 1; i < argc; ++i) tokens.push_back(std::atoi(argv[i]));
  if (tokens.empty() || *std::min_element(tokens.begin(), tokens.end()) < 1 ||
      *std::max_element(tokens.begin(), tokens.end()) > 8192) {
    std::fprintf(stderr, "usage: cuda_linear_bench TOKENS ...     1 .. 8192 each\n");
    return 2;
  }
  try {
    Bench bench(*std::max_element(tokens.begin(), tokens.end()));
    for (const int t : tokens) bench.measure(t);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
