// What was given to a stream, to be given again in one call: owned, movable. Failures are CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "backends/cuda/runtime/stream.h"

namespace assay::cuda {

class Graph {
 public:
  // Runs `give`, which puts work on the stream, and keeps that work without doing it. What `give` throws comes through;
  // nothing is kept then. Addresses and values are those of now.
  template <class Give>
  static Graph capture(const Stream& stream, const Give& give) {
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      give();
    } catch (...) {
      cudaStreamEndCapture(stream.get(), &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
    Graph made;
    const cudaError_t code = cudaGraphInstantiate(&made.work_, graph, 0);
    cudaGraphDestroy(graph);
    check(code, "cudaGraphInstantiate");
    return made;
  }

  ~Graph() {
    if (work_ != nullptr) cudaGraphExecDestroy(work_);
  }
  Graph(Graph&& other) noexcept : work_(std::exchange(other.work_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(work_, other.work_);
    return *this;
  }

  void launch(const Stream& stream) const { check(cudaGraphLaunch(work_, stream.get()), "cudaGraphLaunch"); }

 private:
  Graph() = default;
  cudaGraphExec_t work_ = nullptr;
};

}  // namespace assay::cuda
