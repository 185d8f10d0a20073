// Attention of bf16 models on one GPU, 16 heads of 128 channels by default: prompts, many sequences of one new token
// each, and what comes before attention (norms of heads, rotation, cache). One line a measurement: the median of
// several rounds, in each of which launches follow one another in a CUDA graph, on caches that take turns. Usage:
// cuda_attention_bench [GROUPS HEADS_PER_GROUP CHANNELS]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "backends/cuda/kernels/attend_any.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/stream.h"

namespace assay::cuda {
namespace {

constexpr int kBlockSize = 64;
constexpr int kLaunches = 12;  // of a round
constexpr int kRounds = 5;

struct Heads {
  int groups = 16;
  int per_group = 1;
  int channels = 128;
  int all() const { return groups * per_group; }
};

// bf16 of both signs, about 1 in size.
DeviceBuffer<uint16_t> random_numbers(size_t count) {
  std::vector<uint16_t> host(std::min<size_t>(count, size_t{1} << 21));
  uint32_t seed = 1;
  for (uint16_t& v : host) {
    seed = seed * 1664525u + 1013904223u;
    v = static_cast<uint16_t>((seed >> 31) << 15 | (0x3f00u + (seed >> 8) % 0x100u));
  }
  DeviceBuffer<uint16_t> numbers(count);
  for (size_t at = 0; at < count; at += host.size()) {
    check(cudaMemcpy(numbers.data() + at, host.data(), std::min(host.size(), count - at) * 2, cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  return numbers;
}

// Microseconds of one call of launch(stream, i).
double microseconds(const std::function<void(cudaStream_t, int)>& launch) {
  const Stream stream;
  launch(stream.get(), 0);
  stream.wait();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < kLaunches; ++i) launch(stream.get(), i);
  check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  std::vector<double> times;
  for (int round = 0; round <= kRounds; ++round) {
    Event start;
    Event end;
    start.record(stream);
    check(cudaGraphLaunch(ready, stream.get()), "cudaGraphLaunch");
    end.record(stream);
    end.wait();
    if (round > 0) times.push_back(static_cast<double>(end.since(start)) * 1e3 / kLaunches);
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}

// Sequences of `length` positions, of which the last `fresh` are the pass's tokens; `copies` of the cache.
class Pass {
 public:
  Pass(const Heads& heads, int sequences, int length, int fresh, int copies)
      : heads_(heads),
        tokens_(sequences * fresh),
        blocks_(sequences * ((length + kBlockSize - 1) / kBlockSize)),
        copies_(copies),
        numbers_(static_cast<size_t>(blocks_) * kBlockSize * static_cast<size_t>(heads.groups * heads.channels)) {
    std::vector<int32_t> positions;
    std::vector<int32_t> tables;
    std::vector<int32_t> bundles;
    std::vector<int32_t> blocks;
    const int each = blocks_ / sequences;
    for (int s = 0; s < sequences; ++s) {
      for (int i = 0; i < fresh; ++i) {
        if (i % kBundle == 0) {
          bundles.insert(bundles.end(), {static_cast<int32_t>(positions.size()), std::min(kBundle, fresh - i)});
        }
        positions.push_back(length - fresh + i);
        tables.push_back(s * each);
      }
      for (int b = 0; b < each; ++b) blocks.push_back((s * each + b) * 7919 % blocks_);
    }
    positions_ = upload(positions);
    tables_ = upload(tables);
    bundles_ = upload(bundles);
    blocks_of_all_ = upload(blocks);
    keys_ = random_numbers(numbers_ * static_cast<size_t>(copies));
    values_ = random_numbers(numbers_ * static_cast<size_t>(copies));
    queries_ = random_numbers(static_cast<size_t>(tokens_) * static_cast<size_t>(heads.all() * heads.channels));
    y_ = random_numbers(queries_.size());
    where_ = {tokens_,
              positions_.data(),
              tables_.data(),
              blocks_of_all_.data(),
              length,
              bundles_.data(),
              static_cast<int>(bundles.size() / 2)};
    where_.alone = 0;
    for (size_t b = 1; b < bundles.size(); b += 2) where_.alone += bundles[b] == 1 ? 1 : 0;
    splits_ = DeviceBuffer<float>(attend_floats(args(0)));
  }

  double attend() {
    return microseconds([this](cudaStream_t stream, int i) { attend_any(args(i), stream); });
  }

  double prepare(bool norm) {
    const DeviceBuffer<float> qkv = upload(std::vector<float>(
        static_cast<size_t>(tokens_ * heads_.groups * (heads_.per_group + 2) * heads_.channels), 0.7f));
    const auto gamma = upload(std::vector<float>(static_cast<size_t>(heads_.channels), 0.9f));
    const auto rotary = upload(std::vector<float>(static_cast<size_t>(where_.longest * heads_.channels), 0.6f));
    return microseconds([&](cudaStream_t stream, int i) {
      HeadsArgs args{.qkv = qkv.data(), .queries = queries_.data(), .cache = cache(i), .tokens = where_};
      args.per_group = heads_.per_group;
      if (norm) args.q_norm.gamma = args.k_norm.gamma = gamma.data();
      args.epsilon = 1e-5f;
      args.rotary = rotary.data();
      args.half = heads_.channels / 2;
      prepare_heads(args, stream);
    });
  }

 private:
  AttendArgs args(int i) const {
    AttendArgs args{.queries = queries_.data(), .cache = cache(i), .tokens = where_};
    args.per_group = heads_.per_group;
    args.scale = 1.0f / std::sqrt(static_cast<float>(heads_.channels));
    args.splits = splits_.data();
    args.y = {y_.data(), heads_.all() * heads_.channels, true};
    return args;
  }
  CacheView cache(int i) const {
    const size_t at = static_cast<size_t>(i % copies_) * numbers_;
    return {keys_.data() + at, values_.data() + at, true, heads_.groups, heads_.channels, kBlockSize, blocks_};
  }

  Heads heads_;
  int tokens_;
  int blocks_;
  int copies_;
  size_t numbers_;  // of one cache's keys
  DeviceBuffer<int32_t> positions_;
  DeviceBuffer<int32_t> tables_;
  DeviceBuffer<int32_t> bundles_;
  DeviceBuffer<int32_t> blocks_of_all_;
  DeviceBuffer<uint16_t> keys_;
  DeviceBuffer<uint16_t> values_;
  DeviceBuffer<uint16_t> queries_;
  DeviceBuffer<uint16_t> y_;
  DeviceBuffer<float> splits_;
  Tokens where_;
};

void run(const Heads& heads) {
  std::printf("%d groups of %d heads of %d channels\n", heads.groups, heads.per_group, heads.channels);
  std::printf("prompt of one sequence          us   TFLOP/s (4 flops a channel and position seen)\n");
  for (const int tokens : {64, 128, 256, 512, 1024, 2048, 4096}) {
    const double us = Pass(heads, 1, tokens, tokens, 2).attend();
    const double flops = 2.0 * heads.all() * heads.channels * tokens * (tokens + 1.0);
    std::printf("%6d tokens            %10.1f %9.1f\n", tokens, us, flops / us * 1e-6);
  }
  std::printf("1,024 tokens behind 3,072 %7.1f\n", Pass(heads, 1, 4096, 1024, 2).attend());
  std::printf("sequences of one new token      us      GB/s\n");
  for (const int context : {100, 256, 1000, 4096}) {
    for (const int sequences : {1, 9, 16, 32, 64}) {
      const double bytes = 4.0 * heads.groups * heads.channels * context * sequences;
      const int copies = std::clamp(static_cast<int>(4e8 / bytes), 1, kLaunches);
      const double us = Pass(heads, sequences, context, 1, copies).attend();
      std::printf("%4d at %4d            %10.1f %9.0f\n", sequences, context, us, bytes / us * 1e-3);
    }
  }
  std::printf("heads prepared                  us   with norms\n");
  for (const int tokens : {1, 64, 1024}) {
    Pass pass(heads, 1, tokens, tokens, 2);
    std::printf("%6d tokens            %10.1f %9.1f\n", tokens, pass.prepare(false), pass.prepare(true));
  }
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) {
  const auto device = assay::cuda::find_device();
  if (!device) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    return 1;
  }
  assay::cuda::use_device(*device);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  assay::cuda::Heads heads;
  if (argc == 4) heads = {std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])};
  if ((argc != 1 && argc != 4) || heads.groups < 1 || heads.per_group < 1 || heads.channels < 8) {
    std::fprintf(stderr, "usage: %s [GROUPS HEADS_PER_GROUP CHANNELS]\n", argv[0]);
    return 2;
  }
  assay::cuda::run(heads);
  return 0;
}
