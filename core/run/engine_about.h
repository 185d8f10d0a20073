// What an opened engine says of itself: found out by it, or what its descriptor promises.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "assay/status.h"
#include "core/plugin/plugin.h"

namespace assay::run {

struct EngineAbout {
  uint64_t capabilities = 0;  // ASSAY_CAP_*
  // For the provenance of results; a member named like a capability (ABI header) tells how that was found out.
  std::map<std::string, std::string> facts = {};

  bool can(uint64_t capability) const { return (capabilities & capability) == capability; }
};

// Asks the handle where the engine's table has `info`; else the descriptor's capabilities and no facts.
// Fails as the engine does, and with kInvalid for capabilities beyond the descriptor's and for facts that are no JSON
// object of strings.
Result<EngineAbout> about_of(const plugin::Plugin& engine, void* handle);

}  // namespace assay::run
