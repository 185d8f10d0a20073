// A clock around the kernels of one pass: a mark before each, all on one stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/runtime/stream.h"
#include "backends/reference/border/measurable.h"

namespace assay::cuda {

// Distinct experts that `tokens` tokens choose between them, if each chooses evenly and independently: what a mixture's
// bytes are declared by.
double experts_chosen(int experts, int topk, int tokens);

// For one pass and one thread. Throws CudaError. Short kernels look longer by what the device needs from one launch to
// the next with a mark between them, about a microsecond.
class KernelClock {
 public:
  explicit KernelClock(const Stream& stream) : stream_(stream) {}

  // What follows on the stream, up to the next mark, is one launch of kernel `name`, which cannot do without so many
  // bytes and flops. An empty name: it is no kernel and is left out.
  void mark(const char* name, double bytes, double flops);

  // Waits for the stream. Kernels of one name together, in the order in which they came first.
  std::vector<backend::KernelTime> read();

 private:
  struct Mark {
    std::string name;
    double bytes = 0;
    double flops = 0;
    std::unique_ptr<Event> begin;
  };
  const Stream& stream_;
  std::vector<Mark> marks_;
};

}  // namespace assay::cuda
