// Memory that is lent to a plugin for one call: read-only while the call runs where it is an input, and unreadable
// afterwards, so that a plugin that keeps a pointer dies where it uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "assay/plugin_abi.h"

namespace assay::conformance {

// An arena of pages of its own. Kept until the process ends. For one thread.
class Lent {
 public:
  // `what` names the memory in findings, e.g. "the request of submit". `bytes`: the most that is put into it.
  explicit Lent(const std::string& what, size_t bytes = 1 << 16);
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() { take_back(); }

  // Copies, aligned. A string is followed by bytes that belong to nobody, not by NUL.
  assay_str put(std::string_view text);
  assay_ids put(std::span<const int32_t> ids);
  assay_doubles put(std::span<const double> values);
  template <class T>
  T* array(std::span<const T> values) {
    return static_cast<T*>(bytes(values.data(), values.size_bytes()));
  }
  template <class T>
  T* object(const T& value) {
    return static_cast<T*>(bytes(&value, sizeof(T)));
  }
  // The first `size` bytes of a struct, so that what lies behind them cannot be touched: as an older caller sends it.
  template <class T>
  T* cut(const T& value, size_t size) {
    return static_cast<T*>(at_end(&value, size));
  }
  // The struct followed by `more` bytes that are set: as a newer caller sends it. `size` in it is changed.
  template <class T>
  T* grown(T value, size_t more) {
    value.size += static_cast<uint32_t>(more);
    void* place = bytes(nullptr, sizeof(T) + more);
    std::memcpy(place, &value, sizeof(T));
    std::memset(static_cast<char*>(place) + sizeof(T), 0xEE, more);
    return static_cast<T*>(place);
  }

  void lock();       // from now on it can only be read
  void take_back();  // from now on it cannot be touched

 private:
  void* bytes(const void* from, size_t size);
  void* at_end(const void* from, size_t size);
  void protect(int how, int state);

  size_t region_;
  char* begin_;
  size_t capacity_;
  size_t used_ = 0;
};

// What is wrong with touching `address`; null where it is not lent memory. Async-signal-safe.
const char* describe_fault(const void* address);

// Allocates, fills and frees blocks of many sizes, so that memory that was freed too early does not keep its content.
void churn_heap();

}  // namespace assay::conformance
