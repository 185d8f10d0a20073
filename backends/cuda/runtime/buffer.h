// Memory of the device and page-locked memory of the host: owned, movable, sized in elements, content undefined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/runtime/error.h"

namespace assay::cuda {

namespace detail {

struct DeviceMemory {
  static void take(void** data, size_t bytes) { check(cudaMalloc(data, bytes), message(bytes).c_str()); }
  static void give(void* data) { cudaFree(data); }
  static std::string message(size_t bytes) { return "cudaMalloc of " + std::to_string(bytes) + " bytes"; }
};

struct PinnedMemory {
  static void take(void** data, size_t bytes) {
    const cudaError_t code = cudaMallocHost(data, bytes);
    if (code == cudaErrorMemoryAllocation) throw CudaError::host_memory(bytes);
    check(code, "cudaMallocHost");
  }
  static void give(void* data) { cudaFreeHost(data); }
};

template <class T, class Memory>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t count) : count_(count) {  // throws CudaError
    void* data = nullptr;
    if (count > 0) Memory::take(&data, count * sizeof(T));
    data_ = static_cast<T*>(data);
  }
  static Buffer adopt(T* data, size_t count) {  // memory that was taken for it
    Buffer buffer;
    buffer.data_ = data;
    buffer.count_ = count;
    return buffer;
  }
  ~Buffer() {
    if (data_ != nullptr) Memory::give(data_);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  // At least `count` elements; the old content is lost when it grows. The device must not be using the buffer.
  void reserve(size_t count) {
    if (count <= count_) return;
    *this = Buffer();
    *this = Buffer(count);
  }

  T* data() const { return data_; }
  size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace detail

template <class T>
using DeviceBuffer = detail::Buffer<T, detail::DeviceMemory>;
template <class T>
using PinnedBuffer = detail::Buffer<T, detail::PinnedMemory>;

// `bytes` of device memory for `what`: kExhausted with needed and free bytes, and who holds the rest. Throws CudaError
// for other faults.
Result<DeviceBuffer<std::byte>> take_memory(uint64_t bytes, const std::string& what);

// Copies `values` to the device and waits: for tests and for small tables.
template <class T>
DeviceBuffer<T> upload(const std::vector<T>& values) {
  DeviceBuffer<T> buffer(values.size());
  if (!values.empty()) {
    check(cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  return buffer;
}

// The whole buffer, after all work that was given to the device.
template <class T>
std::vector<T> download(const DeviceBuffer<T>& buffer) {
  std::vector<T> values(buffer.size());
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (!values.empty()) {
    check(cudaMemcpy(values.data(), buffer.data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  return values;
}

}  // namespace assay::cuda
