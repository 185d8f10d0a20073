#include "plugins/launchers/command/hosts.h"

#include <algorithm>
#include <limits>

namespace assay::launchers {
namespace {

constexpr std::chrono::seconds kRest{1};
constexpr int kMostDoublings = 6;

}  // namespace

Hosts::Hosts(const CommandOptions& options) : most_failures_(options.host_failures), nameless_(options.hosts.empty()) {
  for (const HostSlots& host : options.hosts) hosts_.push_back({.name = host.name, .free = host.slots});
  if (nameless_)
    hosts_.push_back({.name = "", .free = options.slots > 0 ? options.slots : std::numeric_limits<int>::max()});
}

std::optional<size_t> Hosts::take(Time now) {
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const size_t at = (next_ + i) % hosts_.size();
    if (hosts_[at].free == 0 || !usable(hosts_[at]) || now < hosts_[at].rests_until) continue;
    next_ = at + 1;
    --hosts_[at].free;
    return at;
  }
  return std::nullopt;
}

void Hosts::give_back(size_t host) { ++hosts_[host].free; }

void Hosts::failed(size_t host, Time begun, Time now) {
  Host& it = hosts_[host];
  if (it.failures > 0 && begun <= it.failed_at) return;
  it.failed_at = now;
  it.rests_until = now + kRest * (1 << std::min(it.failures, kMostDoublings));
  ++it.failures;
}

bool Hosts::none_left() const {
  return std::none_of(hosts_.begin(), hosts_.end(), [this](const Host& host) { return usable(host); });
}

}  // namespace assay::launchers
