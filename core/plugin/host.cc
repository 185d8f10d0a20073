#include "core/plugin/host.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"

namespace assay::plugin {
namespace {

struct Host {
  HostServices services;
  assay_host table{};
};

void log(void* context, int32_t level, assay_str message) {
  const HostServices& services = static_cast<const Host*>(context)->services;
  if (services.log) services.log(static_cast<assay_log_level>(level), sdk::text(message));
}

int32_t cancelled(void* context) {
  const HostServices& services = static_cast<const Host*>(context)->services;
  return services.cancelled && services.cancelled() ? 1 : 0;
}

uint64_t now_ns(void*) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace

const assay_host* make_host(HostServices services) {
  static auto* kept = new std::vector<std::unique_ptr<Host>>;  // never destroyed: plugins may outlive static objects
  kept->push_back(std::make_unique<Host>());
  Host* host = kept->back().get();
  host->services = std::move(services);
  host->table = sdk::sized<assay_host>();
  host->table.abi_major = ASSAY_ABI_MAJOR;
  host->table.abi_minor = ASSAY_ABI_MINOR;
  host->table.context = host;
  host->table.log = log;
  host->table.cancelled = cancelled;
  host->table.now_ns = now_ns;
  return &host->table;
}

const assay_host* silent_host() {
  static const assay_host* host = make_host({});
  return host;
}

}  // namespace assay::plugin
