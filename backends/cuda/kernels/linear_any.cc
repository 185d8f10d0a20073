#include "backends/cuda/kernels/linear_any.h"

#include "backends/cuda/kernels/linear_few.h"
#include "backends/cuda/kernels/linear_many.h"

namespace assay::cuda {

void linear_any(const LinearArgs& args, cudaStream_t stream) {
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

}  // namespace assay::cuda
