#include "backends/cuda/kernels/attend_any.h"

#include "backends/cuda/kernels/attend_bf16.h"
#include "backends/cuda/kernels/attend_few.h"
#include "backends/cuda/kernels/hopper/attend_hopper.h"

namespace assay::cuda {

namespace {

void attend_alone(const AttendArgs& args, cudaStream_t stream) {
  can_attend_few(args) ? attend_few(args, stream) : attend_bf16(args, 1, stream);
}

bool all_alone(const AttendArgs& args) {
  return args.tokens.bundles == nullptr || args.tokens.count - args.first == args.tokens.bundle_count;
}

}  // namespace

size_t attend_floats(const AttendArgs& args) {
  const int kept = hopper_attends(args) ? args.tokens.bundle_count : args.tokens.count - args.first;
  return split_floats(kept, args.cache.groups * args.per_group, args.cache.channels, args.tokens.longest);
}

void attend_any(const AttendArgs& args, cudaStream_t stream) {
  if (args.cache.bf16 && all_alone(args)) return attend_alone(args, stream);
  if (!hopper_attends(args)) return attend(args, stream);
  attend_hopper(args, 2, stream);
  if (args.tokens.alone != 0) attend_alone(args, stream);
}

}  // namespace assay::cuda
