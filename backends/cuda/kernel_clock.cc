#include "backends/cuda/kernel_clock.h"

#include <algorithm>
#include <cmath>

namespace assay::cuda {

double experts_chosen(int experts, int topk, int tokens) {
  return experts * (1 - std::pow(1 - static_cast<double>(topk) / experts, tokens));
}

void KernelClock::mark(const char* name, double bytes, double flops) {
  marks_.push_back({name, bytes, flops, std::make_unique<Event>()});
  marks_.back().begin->record(stream_);
}

std::vector<backend::KernelTime> KernelClock::read() {
  Event end;
  end.record(stream_);
  stream_.wait();
  std::vector<backend::KernelTime> times;
  for (size_t i = 0; i < marks_.size(); ++i) {
    const Mark& mark = marks_[i];
    if (mark.name.empty()) continue;
    auto found = std::ranges::find(times, mark.name, &backend::KernelTime::name);
    if (found == times.end()) found = times.insert(found, {.name = mark.name});
    const Event& next = i + 1 < marks_.size() ? *marks_[i + 1].begin : end;
    ++found->launches;
    found->bytes += mark.bytes;
    found->flops += mark.flops;
    found->seconds += static_cast<double>(next.since(*mark.begin)) * 1e-3;
  }
  marks_.clear();
  return times;
}

}  // namespace assay::cuda
