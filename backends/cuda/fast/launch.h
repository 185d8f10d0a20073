// How the kernels of one step follow one another.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace assay::cuda::fast {

// What decode_step calls before each of its launches, for clocks: the kernel's name and its bytes (kernel_info.h; as if
// no two tokens shared an expert).
struct StepMark {
  void (*call)(void* context, const char* kernel, double bytes) = nullptr;
  void* context = nullptr;
  int position = 0;  // of the tokens
};

// `overlapped`: programmatic dependent launch. The kernel may then start before the one before it has ended: it asks
// for its first weights, waits, and lets the kernel after it start in turn.
struct Launch {
  cudaStream_t stream = nullptr;
  bool overlapped = false;
  const StepMark* mark = nullptr;
};

template <class... Parameters, class... Arguments>
cudaError_t launch(const Launch& how, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                   const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = how.stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = how.overlapped ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace assay::cuda::fast
