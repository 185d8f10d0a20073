// Large memory: page-aligned, huge pages where the system gives them, refused in words when it is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "assay/status.h"

namespace assay::cpu {

// Bytes that may still be taken: MemAvailable, or what the control group leaves when that is less. UINT64_MAX when the
// system does not tell.
uint64_t available_memory();

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
