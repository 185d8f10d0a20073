// The correct engine inside of engine faulty.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/faulty/options.h"

namespace assay::engines {

// Methods mean what assay_engine_table says. One thread at a time.
class InnerEngine {
 public:
  virtual ~InnerEngine() = default;
  virtual Status submit(const assay_request& request) = 0;
  virtual Status cancel(uint64_t id) = 0;
  virtual Status step(std::vector<EngineEvent>* events) = 0;
  virtual size_t pending() const = 0;
  virtual Status reset() = 0;
};

// Fails as the engine's open does.
Result<std::unique_ptr<InnerEngine>> open_inner(Inner inner, const assay_engine_config& config, const Host& host);

}  // namespace assay::engines
