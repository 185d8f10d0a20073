#include "backends/cuda/kernels/linear_any.h"

#include <vector>

#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/linear_few.h"
#include "backends/cuda/kernels/linear_many.h"

namespace assay::cuda {
namespace {

// Without wgmma.
void linear_alone(const LinearArgs& args, cudaStream_t stream) {
  constexpr int kFewSlots = 2;  // slots an expert, on average
  const int few = args.groups == nullptr ? kTileTokens : kFewSlots * args.groups->experts;
  if (!args.x.bf16) {
    linear(args, stream);
  } else if (args.tokens <= few) {
    linear_few(args, stream);
  } else {
    linear_many(args, stream);
  }
}

// The jobs as wgmma takes them: experts' vectors between the layers sorted, and before them where that pays.
void mlps_on_hopper(std::span<const MlpJob> jobs, cudaStream_t stream) {
  constexpr int kManySlots = 32;  // an expert, on average
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
  linear_hopper({first, jobs.size()}, stream, 1);
  linear_hopper({second, jobs.size()}, stream, 1);
}

}  // namespace

void linear_any(const LinearArgs& args, cudaStream_t stream) {
  const LinearJob job{args, {}};
  const bool few = args.groups == nullptr && args.tokens <= kTileTokens;
  if (few || !hopper_takes({&job, 1})) return linear_alone(args, stream);
  const HopperJob on_hopper{job};
  linear_hopper({&on_hopper, 1}, stream, 1);
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
