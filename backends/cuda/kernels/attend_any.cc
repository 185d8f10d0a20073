#include "backends/cuda/kernels/attend_any.h"

#include "backends/cuda/kernels/attend_bf16.h"
#include "backends/cuda/kernels/hopper/attend_hopper.h"

namespace assay::cuda {

size_t attend_floats(const AttendArgs& args) {
  const int kept = hopper_attends(args) ? args.tokens.bundle_count : args.tokens.count - args.first;
  return split_floats(kept, args.cache.groups * args.per_group, args.cache.channels, args.tokens.longest);
}

void attend_any(const AttendArgs& args, cudaStream_t stream) {
  if (!hopper_attends(args)) return attend(args, stream);
  const Tokens& tokens = args.tokens;
  if (tokens.count - args.first > tokens.bundle_count) attend_hopper(args, 2, stream);
  if (tokens.alone != 0) attend_bf16(args, 1, stream);
}

}  // namespace assay::cuda
