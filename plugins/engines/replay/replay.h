// Engine replay: answers requests from a file of recorded results.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "assay/golden.h"
#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/common/engine_border.h"

namespace assay::engines {

inline constexpr uint64_t kReplayCapabilities = ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS |
                                                ASSAY_CAP_ROUTING | ASSAY_CAP_BATCH | ASSAY_CAP_TEXT |
                                                ASSAY_CAP_TOKENS | ASSAY_CAP_RECORDED;

// JSON schema of its options: `recorded`, the path of the file, and `ids`.
extern const char* const kReplayOptionsSchema;

// Methods mean what assay_engine_table says. A request is answered by its id alone; its prompt, sampling and wishes are
// not looked at, and the result holds whatever was recorded. The record's id is the request's in decimal, or
// ids[request id] where the option `ids` is given. One step ends everything that is pending. One thread at a time.
class ReplayEngine {
 public:
  // Fails as read_results does, and with kInvalid for bad options or no `recorded`.
  static Result<std::unique_ptr<ReplayEngine>> open(const assay_engine_config& config, const Host& host);

  Status submit(const assay_request& request);
  Status cancel(uint64_t id);
  Status step(std::vector<EngineEvent>* events);
  size_t pending() const { return queue_.size(); }
  Status reset();

 private:
  struct Waiting {
    uint64_t id = 0;
    bool forced = false;
    bool cancelled = false;
  };

  ReplayEngine(ResultSet recorded, std::vector<std::string> ids, const Host& host)
      : recorded_(std::move(recorded)), ids_(std::move(ids)), host_(host) {}

  Result<EngineResult> answer(const Waiting& waiting) const;

  ResultSet recorded_;
  std::vector<std::string> ids_;  // empty: ids in decimal
  Host host_;
  std::vector<Waiting> queue_;
};

}  // namespace assay::engines
