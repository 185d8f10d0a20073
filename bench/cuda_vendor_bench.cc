// Dense layers and attention of a prompt: cuBLASLt and cuDNN (prefill=fast) beside the own kernels, in the shapes of
// the 16B mixture. Prints lines of `key value unit`. Usage: cuda_vendor_bench [TOKENS...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/kernels/attend_any.h"
#include "backends/cuda/kernels/linear_any.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/vendor/fast_prefill.h"
#include "backends/cuda/vendor/testing/some_inputs.h"

namespace {

using namespace assay::cuda;
using assay::Result;

constexpr int kRounds = 5;

void line(const std::string& key, double value, const char* unit) {
  std::printf("%s %.3f %s\n", key.c_str(), value, unit);
}

// Median microseconds of one call out of rounds of some 2 ms; `call(i)` gives the i-th to the stream.
double microseconds(const Stream& stream, const std::function<void(int)>& call) {
  Event begin;
  Event end;
  const auto round = [&](int calls) {
    begin.record(stream);
    for (int i = 0; i < calls; ++i) call(i);
    end.record(stream);
    end.wait();
    return 1000.0 * static_cast<double>(end.since(begin)) / calls;
  };
  round(1);
  const int calls = std::clamp(static_cast<int>(2000 / round(2)), 2, 100);
  std::vector<double> times;
  times.reserve(kRounds);
  for (int i = 0; i < kRounds; ++i) times.push_back(round(calls));
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}

struct Layer {
  const char* name;
  int rows;
  int cols;
  bool gated;
};
constexpr Layer kLayers[] = {{"qkv", 6144, 2048, false},
                             {"projection", 2048, 2048, false},
                             {"shared_fc1", 5632, 2048, true},
                             {"shared_fc2", 2048, 2816, false},
                             {"output", 131072, 2048, false}};

// Several matrices of the shape in turn, so that weights come from memory as in a model.
bool bench_layer(const Layer& layer, const std::vector<int>& sizes, const Stream& stream) {
  constexpr int64_t kApart = int64_t{256} << 20;  // bytes
  const int64_t bytes = int64_t{2} * layer.rows * layer.cols;
  std::vector<vendor::SomeMatrix> weights;
  std::vector<Matrix> matrices;
  for (int64_t i = 0; i * bytes < kApart; ++i) {
    weights.emplace_back(layer.rows, layer.cols, layer.gated, static_cast<uint32_t>(i + 1));
    matrices.push_back(weights.back().matrix);
  }
  const int most = *std::max_element(sizes.begin(), sizes.end());
  Result<vendor::FastLinear> fast = vendor::FastLinear::open(vendor::object_folders(), matrices, most);
  if (!fast) {
    std::fprintf(stderr, "cuda_vendor_bench: %s\n", fast.status().message().c_str());
    return false;
  }
  const std::string name = std::string("gemm.") + layer.name;
  std::printf("# %s: %s; rows %s\n", name.c_str(), fast->plans()[0].text().c_str(),
              fast->plans()[0].rows_equal ? "equal" : "not equal");
  line(name + ".rows_equal", fast->plans()[0].rows_equal ? 1 : 0, "bool");
  const auto x = vendor::some_bf16(static_cast<size_t>(most) * static_cast<size_t>(layer.cols), 77);
  const DeviceBuffer<float> y(static_cast<size_t>(most) * static_cast<size_t>(layer.rows));
  for (const int tokens : sizes) {
    const auto args = [&](int i) {
      LinearArgs a{.weight = matrices[static_cast<size_t>(i) % matrices.size()]};
      a.x = {x.data(), layer.cols, true};
      a.y = y.data();
      a.y_stride = layer.rows;
      a.tokens = tokens;
      return a;
    };
    const double own = microseconds(stream, [&](int i) { linear_any(args(i), stream.get()); });
    const double vendors = microseconds(stream, [&](int i) { fast->run(args(i), stream.get()); });
    const std::string key = name + "." + std::to_string(tokens);
    const double flops = 2.0 * layer.rows * layer.cols * tokens;
    line(key + ".own", own, "us");
    line(key + ".cublaslt", vendors, "us");
    line(key + ".cublaslt_rate", flops / vendors * 1e-6, "TFLOP/s");
    line(key + ".gain", own / vendors, "times");
  }
  return true;
}

bool bench_attention(const std::vector<int>& sizes, const Stream& stream) {
  constexpr int kHeads = 16;
  constexpr int kChannels = 128;
  const int most = *std::max_element(sizes.begin(), sizes.end());
  const auto begin = std::chrono::steady_clock::now();
  auto fast = vendor::FastAttention::open(vendor::object_folders(), {kHeads, kHeads, kChannels}, {1, most});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  if (!fast) {
    std::fprintf(stderr, "cuda_vendor_bench: %s\n", fast.status().message().c_str());
    return false;
  }
  std::printf("# attention: %s, %s\n", fast->version().c_str(), fast->engine().c_str());
  line("attention.open", took.count(), "ms");
  for (const int tokens : sizes) {
    const vendor::SomeSequence sequence({.groups = kHeads, .channels = kChannels}, 1, 0, tokens);
    const double own = microseconds(stream, [&](int) { attend_any(sequence.args(), stream.get()); });
    const double vendors = microseconds(stream, [&](int) { fast->run(sequence.args(), {0, tokens, 0}, stream.get()); });
    const std::string key = "attention." + std::to_string(tokens);
    const double flops = 2.0 * kHeads * kChannels * tokens * (tokens + 1.0);
    line(key + ".own", own, "us");
    line(key + ".cudnn", vendors, "us");
    line(key + ".cudnn_rate", flops / vendors * 1e-6, "TFLOP/s");
    line(key + ".gain", own / vendors, "times");
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {128, 1024, 4096};
  if (*std::min_element(sizes.begin(), sizes.end()) < 1) {
    std::fprintf(stderr, "usage: cuda_vendor_bench [TOKENS...], each 1 or more\n");
    return 2;
  }
  const Result<Device> device = find_device();
  if (!device) {
    std::fprintf(stderr, "cuda_vendor_bench: %s\n", device.status().message().c_str());
    return 3;
  }
  try {
    use_device(*device);
    const Stream stream;
    bool all = bench_attention(sizes, stream);
    for (const Layer& layer : kLayers) all = bench_layer(layer, sizes, stream) && all;
    return all ? 0 : 1;
  } catch (const CudaError& error) {
    std::fprintf(stderr, "cuda_vendor_bench: %s\n", error.what());
    return 1;
  }
}
