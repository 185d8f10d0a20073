// The services that plugins get from this process (assay_host).
#pragma once

#include <functional>
#include <string_view>

#include "assay/plugin_abi.h"

namespace assay::plugin {

struct HostServices {
  std::function<void(assay_log_level level, std::string_view line)> log;  // called from any thread; null: dropped
  std::function<bool()> cancelled;                                        // called from any thread; null: never
};

// A host with these services. Lives until the process ends, as plugins may keep the pointer.
const assay_host* make_host(HostServices services);

// A host that drops log lines and is never cancelled.
const assay_host* silent_host();

}  // namespace assay::plugin
