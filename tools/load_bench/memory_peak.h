// The most memory that this process has taken since a moment, mappings of files apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace assay::tools {

// Looks every two milliseconds until it is destroyed: what is taken and given back in between goes unnoticed.
class MemoryPeak {
 public:
  MemoryPeak();

  // Bytes above the beginning: anonymous memory, shared memory, and pages that a driver pinned.
  uint64_t bytes() const { return peak_; }

 private:
  uint64_t begin_;
  std::atomic<uint64_t> peak_ = 0;
  std::jthread watch_;
};

}  // namespace assay::tools
