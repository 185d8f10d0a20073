#include "plugins/launchers/command/hosts.h"

#include <algorithm>
#include <limits>

namespace assay::launchers {

Hosts::Hosts(const CommandOptions& options) : most_failures_(options.host_failures), nameless_(options.hosts.empty()) {
  for (const HostSlots& host : options.hosts) hosts_.push_back({host.name, host.slots, 0});
  if (nameless_) hosts_.push_back({"", options.slots > 0 ? options.slots : std::numeric_limits<int>::max(), 0});
}

std::optional<size_t> Hosts::take() {
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const size_t at = (next_ + i) % hosts_.size();
    if (hosts_[at].free == 0 || !usable(hosts_[at])) continue;
    next_ = at + 1;
    --hosts_[at].free;
    return at;
  }
  return std::nullopt;
}

void Hosts::give_back(size_t host) { ++hosts_[host].free; }

void Hosts::failed(size_t host) { ++hosts_[host].failures; }

bool Hosts::none_left() const {
  return std::none_of(hosts_.begin(), hosts_.end(), [this](const Host& host) { return usable(host); });
}

}  // namespace assay::launchers
