#include "backends/cuda/kernels/device_math.cuh"
#include "backends/cuda/kernels/vocabulary.h"
#include "backends/cuda/runtime/error.h"
#include "backends/reference/arithmetic/vocabulary.h"

namespace assay::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kSegment = static_cast<int>(arithmetic::kSegment);

struct Best {
  float value;
  int32_t id;
};

__device__ Best better_of(Best a, Best b) { return b.value > a.value || (b.value == a.value && b.id < a.id) ? b : a; }

// The largest that is no NaN, unless the first is one; the lowest id among equals. Every thread gets it.
__device__ Best best_of(const float* logits, int count) {
  __shared__ Best found[kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  Best best{logits[0], 0};
  if (best.value == best.value) {
    for (int i = thread; i < count; i += kThreads) best = better_of(best, {logits[i], i});
  }
  for (int width = 16; width > 0; width /= 2) {
    best =
        better_of(best, {__shfl_xor_sync(kWholeWarp, best.value, width), __shfl_xor_sync(kWholeWarp, best.id, width)});
  }
  if (thread % 32 == 0) found[thread / 32] = best;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) best = better_of(best, found[w]);
  return best;
}

// One block a segment of a row: 16 blocks of 256 ids times 16 lanes, one thread each.
__global__ void __launch_bounds__(kThreads) segment_kernel(ScanArgs a) {
  __shared__ float lanes[kThreads];
  const int begin = static_cast<int>(blockIdx.x) * kSegment;
  const int count = min(kSegment, a.vocab - begin);
  const float* logits = a.logits + int64_t{blockIdx.y} * a.vocab + begin;
  const Best best = best_of(logits, count);
  const int thread = static_cast<int>(threadIdx.x);
  const int first = thread / kLanes * kBlock + thread % kLanes;
  float acc = 0;
  for (int i = first; i < first + kBlock && i < count; i += kLanes) {
    acc = __fmaf_rn(1.0f, exponential(logits[i] - best.value), acc);
  }
  lanes[thread] = acc;
  __syncthreads();
  if (thread >= 32) return;
  float total = 0;
  for (int block = 0; block < kSegment / kBlock; ++block) total = total + lanes[block * kLanes + thread % kLanes];
  total = tree_sum(total);
  if (thread != 0) return;
  float* out = a.segments + (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * 3;
  out[0] = best.value;
  out[1] = total;
  out[2] = __int_as_float(begin + best.id);
}

// One block a row: the segments put together, the target's logit and rank.
__global__ void __launch_bounds__(kThreads) row_kernel(ScanArgs a, int segments) {
  __shared__ int counts[kThreads];
  const int row = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const float* logits = a.logits + int64_t{row} * a.vocab;
  const int target = a.targets[row];
  int rank = 0;
  if (target >= 0) {
    const float value = logits[target];
    for (int i = thread; i < a.vocab; i += kThreads) {
      rank += i < target ? logits[i] >= value : i > target && logits[i] > value;
    }
  }
  counts[thread] = rank;
  __syncthreads();
  if (thread != 0) return;
  RowFacts facts{};
  for (int i = 0; i < kThreads; ++i) facts.rank += counts[i];
  if (target >= 0) facts.target = logits[target];
  const float* found = a.segments + int64_t{row} * segments * 3;
  facts.top = found[0];
  facts.argmax = __float_as_int(found[2]);
  for (int s = 1; s < segments; ++s) {
    if (found[s * 3] > facts.top) {
      facts.top = found[s * 3];
      facts.argmax = __float_as_int(found[s * 3 + 2]);
    }
  }
  for (int s = 0; s < segments; ++s) {
    facts.total = __fmaf_rn(found[s * 3 + 1], exponential(found[s * 3] - facts.top), facts.total);
  }
  a.facts[row] = facts;
}

int segments_of(int vocab) { return (vocab + kSegment - 1) / kSegment; }

}  // namespace

size_t segment_floats(int rows, int vocab) {
  return static_cast<size_t>(rows) * static_cast<size_t>(segments_of(vocab)) * 3;
}

void scan_rows(const ScanArgs& args, cudaStream_t stream) {
  if (args.rows == 0) return;
  const auto segments = static_cast<unsigned>(segments_of(args.vocab));
  segment_kernel<<<dim3(segments, static_cast<unsigned>(args.rows)), kThreads, 0, stream>>>(args);
  check_launch("scan_rows");
  row_kernel<<<static_cast<unsigned>(args.rows), kThreads, 0, stream>>>(args, static_cast<int>(segments));
  check_launch("scan_rows");
}

}  // namespace assay::cuda
