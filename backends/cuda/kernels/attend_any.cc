#include "backends/cuda/kernels/attend_any.h"

namespace assay::cuda {

size_t attend_floats(const AttendArgs& args) {
  return split_floats(args.tokens.count - args.first, args.cache.groups * args.per_group, args.cache.channels,
                      args.tokens.longest);
}

void attend_any(const AttendArgs& args, cudaStream_t stream) { attend(args, stream); }

}  // namespace assay::cuda
