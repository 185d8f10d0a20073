#include "backends/cuda/kernels/linear_any.h"

#include "backends/cuda/kernels/hopper/linear_hopper.h"
#include "backends/cuda/kernels/linear_few.h"
#include "backends/cuda/kernels/linear_many.h"

namespace assay::cuda {
namespace {

// Of one layer, without wgmma.
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

}  // namespace

void linear_any(const LinearArgs& args, cudaStream_t stream) {
  const LinearJob job{args, {}};
  linear_jobs({&job, 1}, stream);
}

void linear_jobs(std::span<const LinearJob> jobs, cudaStream_t stream) {
  const bool few = jobs.size() == 1 && jobs[0].linear.groups == nullptr && jobs[0].linear.tokens <= kTileTokens;
  if (!few && hopper_takes(jobs)) return linear_hopper(jobs, stream);
  for (const LinearJob& job : jobs) {
    if (job.activate.y.data == nullptr && jobs.size() == 1) {
      linear_alone(job.linear, stream);
      continue;
    }
    linear_any(job.linear, stream);
    if (job.activate.y.data != nullptr) activate(job.activate, stream);
  }
}

}  // namespace assay::cuda
