// Large memory: page-aligned, huge pages where the system gives them, refused in words when it is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "assay/status.h"

namespace assay::cpu {

// Bytes that may still be taken: MemAvailable, or what the control group leaves when that is less. UINT64_MAX when the
// system does not tell.
uint64_t available_memory();

// Floats that start at a cache line, so that no vector load of a buffer's start crosses two.
template <class T>
struct LineAligned {
  using value_type = T;
  LineAligned() = default;
  template <class U>
  LineAligned(const LineAligned<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* data, size_t) { ::operator delete(data, kLine); }
  bool operator==(const LineAligned&) const { return true; }
  static constexpr std::align_val_t kLine{64};
};
using Floats = std::vector<float, LineAligned<float>>;

// Anonymous zero-filled memory, owned. Movable.
class Region {
 public:
  Region() = default;
  // `what` is named in the message: kExhausted with needed and free bytes. bytes may be 0.
  static Result<Region> allocate(uint64_t bytes, const std::string& what);
  ~Region();
  Region(Region&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace assay::cpu
