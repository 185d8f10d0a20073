#include "tools/load_bench/memory_peak.h"

#include <algorithm>
#include <chrono>

#include "core/run/process.h"

namespace assay::tools {
namespace {

// Of the process, as /proc/self/status has it (proc(5)).
uint64_t taken() {
  uint64_t bytes = 0;
  for (const char* name : {"RssAnon", "RssShmem"}) bytes += run::proc_kilobytes("/proc/self/status", name);
  return std::max(bytes, run::proc_kilobytes("/proc/self/status", "VmPin"));
}

}  // namespace

MemoryPeak::MemoryPeak()
    : begin_(taken()), watch_([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          peak_ = std::max(peak_.load(), std::max(taken(), begin_) - begin_);
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
      }) {}

}  // namespace assay::tools
