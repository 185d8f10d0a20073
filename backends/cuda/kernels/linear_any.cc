#include "backends/cuda/kernels/linear_any.h"

#include <vector>

#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/linear_few.h"
#include "backends/cuda/kernels/linear_many.h"

namespace assay::cuda {
namespace {

// Whether linear_few() is best: the matrix is read once, or so small that reading it for every 8 tokens costs less than
// what a tile of tensor cores leaves idle (a router).
bool few_tokens(const LinearArgs& args) {
  constexpr int kFewSlots = 2;  // slots an expert, on average
  constexpr int64_t kSmallMatrix = int64_t{1} << 19;
  constexpr int kSomeTokens = 2048;
  if (args.groups != nullptr) return args.tokens <= kFewSlots * args.groups->experts;
  return args.tokens <= kTileTokens || (args.weight.bytes() <= kSmallMatrix && args.tokens <= kSomeTokens);
}

// Without wgmma.
void linear_alone(const LinearArgs& args, cudaStream_t stream) {
  if (!args.x.bf16) {
    linear(args, stream);
  } else if (few_tokens(args)) {
    linear_few(args, stream);
  } else {
    linear_many(args, stream);
  }
}

// The jobs as wgmma takes them: experts' vectors between the layers sorted, and before them where that pays.
void mlps_on_hopper(std::span<const MlpJob> jobs, cudaStream_t stream) {
  constexpr int kManySlots = 4;  // an expert, on average
  HopperJob first[kMostJobs];
  HopperJob second[kMostJobs];
  for (size_t i = 0; i < jobs.size(); ++i) {
    first[i].job = jobs[i].first;
    second[i].job.linear = jobs[i].second;
    LinearArgs& into = first[i].job.linear;
    if (into.groups == nullptr) continue;
    first[i].sorted_inner = true;
    second[i].sorted_x = true;
    second[i].old_groups = true;
    if (jobs[i].sorted.data == nullptr || into.tokens < kManySlots * into.groups->experts) continue;
    sort_rows({into.x, into.x_divisor, into.groups->order, into.tokens, jobs[i].sorted}, stream);
    into.x = jobs[i].sorted;
    first[i].sorted_x = true;
  }
  linear_hopper({first, jobs.size()}, stream);
  linear_hopper({second, jobs.size()}, stream);
}

}  // namespace

void linear_any(const LinearArgs& args, cudaStream_t stream) {
  const LinearJob job{args, {}};
  if ((args.groups == nullptr && few_tokens(args)) || !hopper_takes({&job, 1})) return linear_alone(args, stream);
  const HopperJob on_hopper{job};
  linear_hopper({&on_hopper, 1}, stream);
}

void linear_mlps(std::span<const MlpJob> jobs, cudaStream_t stream) {
  std::vector<LinearJob> all;
  for (const MlpJob& job : jobs) all.push_back(job.first);
  const bool first = hopper_takes(all);
  for (size_t i = 0; i < jobs.size(); ++i) all[i] = {jobs[i].second, {}};
  if (first && hopper_takes(all)) return mlps_on_hopper(jobs, stream);
  for (const MlpJob& job : jobs) {
    linear_any(job.first.linear, stream);
    activate(job.first.activate, stream);
    linear_any(job.second, stream);
  }
}

}  // namespace assay::cuda
