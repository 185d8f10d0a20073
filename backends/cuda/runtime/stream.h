// A queue of the device and a mark in it: owned, movable. Failures are CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "backends/cuda/runtime/error.h"

namespace assay::cuda {

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }

  cudaStream_t get() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "a kernel or copy on the stream"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDefault), "cudaEventCreate"); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }

  void record(const Stream& stream) { check(cudaEventRecord(event_, stream.get()), "cudaEventRecord"); }
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  // Milliseconds from `start` to this; both have happened.
  float since(const Event& start) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace assay::cuda
