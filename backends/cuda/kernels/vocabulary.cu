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

// The sum over the block; every thread gets it.
__device__ int sum_of(int count) {
  __shared__ int sums[kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  count = __reduce_add_sync(kWholeWarp, count);
  if (thread % 32 == 0) sums[thread / 32] = count;
  __syncthreads();
  int total = 0;
  for (int w = 0; w < kWarps; ++w) total += sums[w];
  return total;
}

// What is known of one segment of a row.
struct Segment {
  float top;
  float total;  // of exp(logit - top)
  int32_t argmax;
  int32_t above;  // logits that come before the target
};
static_assert(sizeof(Segment) == 4 * sizeof(float));

// One block a segment of a row: 16 blocks of 256 ids times 16 lanes, one thread each.
__global__ void __launch_bounds__(kThreads) segment_kernel(ScanArgs a) {
  __shared__ float lanes[kThreads];
  const int begin = static_cast<int>(blockIdx.x) * kSegment;
  const int count = min(kSegment, a.vocab - begin);
  const float* row = a.logits + int64_t{blockIdx.y} * a.vocab;
  const float* logits = row + begin;
  const Best best = best_of(logits, count);
  const int thread = static_cast<int>(threadIdx.x);
  const int first = thread / kLanes * kBlock + thread % kLanes;
  float acc = 0;
  for (int i = first; i < first + kBlock && i < count; i += kLanes) {
    acc = __fmaf_rn(1.0f, exponential(logits[i] - best.value), acc);
  }
  lanes[thread] = acc;
  const int target = a.targets[blockIdx.y];
  int above = 0;
  if (target >= 0) {
    const float value = row[target];
    for (int i = thread; i < count; i += kThreads) {
      const float logit = logits[i];
      above += begin + i < target ? logit >= value : begin + i > target && logit > value;
    }
  }
  above = sum_of(above);  // and all lanes are written
  if (thread >= 32) return;
  float total = 0;
  for (int block = 0; block < kSegment / kBlock; ++block) total = total + lanes[block * kLanes + thread % kLanes];
  total = tree_sum(total);
  if (thread != 0) return;
  Segment* out = reinterpret_cast<Segment*>(a.segments) + int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  *out = {best.value, total, begin + best.id, above};
}

// One block a row: the segments put together.
__global__ void __launch_bounds__(kThreads) row_kernel(ScanArgs a, int segments) {
  __shared__ float weights[kThreads];  // exp(top of the segment - top of the row), a round of segments
  __shared__ float totals[kThreads];
  __shared__ Best tops[kThreads];
  const int row = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const Segment* found = reinterpret_cast<const Segment*>(a.segments) + int64_t{row} * segments;
  RowFacts facts{};
  Best best{found[0].top, found[0].argmax};
  int above = 0;
  for (int s = thread; s < segments; s += kThreads) {
    // As a scan that goes up and takes what is larger: the first segment among equals, whose ids are the lowest.
    if (found[s].top > best.value) best = {found[s].top, found[s].argmax};
    above += found[s].above;
  }
  tops[thread] = best;
  above = sum_of(above);  // and all tops are written
  for (int i = 0; i < min(kThreads, segments); ++i) best = better_of(best, tops[i]);
  for (int round = 0; round < segments; round += kThreads) {
    const int s = round + thread;
    if (s < segments) {
      weights[thread] = exponential(found[s].top - best.value);
      totals[thread] = found[s].total;
    }
    __syncthreads();
    for (int i = 0; thread == 0 && i < min(kThreads, segments - round); ++i) {
      facts.total = __fmaf_rn(totals[i], weights[i], facts.total);
    }
    __syncthreads();
  }
  if (thread != 0) return;
  const int target = a.targets[row];
  if (target >= 0) facts.target = a.logits[int64_t{row} * a.vocab + target];
  facts.rank = above;
  facts.top = best.value;
  facts.argmax = best.id;
  a.facts[row] = facts;
}

int segments_of(int vocab) { return (vocab + kSegment - 1) / kSegment; }

}  // namespace

size_t segment_floats(int rows, int vocab) {
  return static_cast<size_t>(rows) * static_cast<size_t>(segments_of(vocab)) * 4;
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
