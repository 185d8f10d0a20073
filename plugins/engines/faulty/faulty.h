// Engine faulty: static_legacy with one planted fault (fault.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/faulty/fault.h"
#include "plugins/engines/faulty/faulty_backend.h"
#include "plugins/engines/static_legacy/engine.h"

namespace assay::engines {

// JSON schema: that of static_legacy and `fault`, which has to be there ("none" is allowed).
const std::string& faulty_options_schema();

// Methods mean what assay_engine_table says, as far as the fault lets them.
class FaultyEngine {
 public:
  static Result<std::unique_ptr<FaultyEngine>> open(const assay_engine_config& config, const Host& host);

  Status submit(const assay_request& request);
  Status cancel(uint64_t id) { return engine_->cancel(id); }
  Status step(std::vector<EngineEvent>* events);
  size_t pending() const { return engine_->pending(); }
  Status reset();

 private:
  FaultyEngine() = default;
  void spoil(std::vector<EngineEvent>* events);

  Fault fault_ = Fault::kNone;
  FaultyModel model_;
  assay_backend_table backend_{};
  std::unique_ptr<StaticEngine> engine_;  // uses the two above
  size_t steps_ = 0;
  std::map<uint64_t, int32_t> new_tokens_;  // request -> max_new_tokens
  std::optional<uint64_t> last_id_;
  std::vector<EngineEvent> held_;  // results that wait for the end (kSwappedRequests)
};

// Takes and touches memory and never gives it back, 64 MiB at a time, 10 ms apart: at most `bytes`.
void leak_memory(size_t bytes);

}  // namespace assay::engines
