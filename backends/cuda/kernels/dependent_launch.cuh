// Programmatic dependent launch: a kernel launched so may start before the one before it has ended.
#pragma once

namespace assay::cuda {

// All that kernels before this one wrote is there from here on. Nothing to wait for in kernels launched otherwise.
__device__ inline void wait_for_kernel_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// The kernel after this one may start, up to its own wait, once every block has called this or ended.
__device__ inline void start_kernel_after() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace assay::cuda
