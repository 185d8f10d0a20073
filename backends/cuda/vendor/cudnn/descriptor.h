// A descriptor of cuDNN's backend interface: owned, movable.
#pragma once

#include <cudnn.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "backends/cuda/vendor/vendor_table.h"

namespace assay::cuda::vendor {

// What failed first; later failures do not overwrite it.
class Failure {
 public:
  bool any() const { return status_ != CUDNN_STATUS_SUCCESS; }
  // True: `status` is a success.
  bool note(cudnnStatus_t status, const char* call) {
    if (status != CUDNN_STATUS_SUCCESS && !any()) {
      status_ = status;
      call_ = call;
    }
    return status == CUDNN_STATUS_SUCCESS;
  }
  void write(Text& why) const {
    std::snprintf(why.line, sizeof(why.line), "%s: %s", call_, cudnnGetErrorString(status_));
  }

 private:
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  const char* call_ = "";
};

class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(cudnnBackendDescriptorType_t type, Failure& failure) : failure_(&failure) {
    failure.note(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
  }
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), failure_(other.failure_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    set_values(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  void set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set_values(name, type, 1, &value);
  }
  void link(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t other) {
    set_one(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other);
  }
  // What has to be said before use; `what` names it in a failure.
  void finalize(const char* what) {
    if (descriptor_ != nullptr) failure_->note(cudnnBackendFinalize(descriptor_), what);
  }

 private:
  void set_values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values) {
    if (descriptor_ == nullptr) return;
    failure_->note(cudnnBackendSetAttribute(descriptor_, name, type, count, values), "cudnnBackendSetAttribute");
  }

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  Failure* failure_ = nullptr;
};

}  // namespace assay::cuda::vendor
