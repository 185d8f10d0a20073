// Engine faulty: static_legacy or buffered with one planted fault (fault.h).
//
// Each place that is struck is a line "planted FAULT: where" of the host's log, at most kMostLines of them: a run
// without one had no effect.
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
#include "plugins/engines/faulty/history.h"
#include "plugins/engines/faulty/inner_engine.h"
#include "plugins/engines/faulty/options.h"
#include "plugins/engines/faulty/request_faults.h"
#include "plugins/engines/faulty/spoil.h"

namespace assay::engines {

// Methods mean what assay_engine_table says, as far as the fault lets them. Places are counted over the requests that
// were submitted before the first step.
class FaultyEngine {
 public:
  static Result<std::unique_ptr<FaultyEngine>> open(const assay_engine_config& config, const Host& host);
  ~FaultyEngine();
  FaultyEngine(const FaultyEngine&) = delete;
  FaultyEngine& operator=(const FaultyEngine&) = delete;

  Status submit(const assay_request& request);
  Status cancel(uint64_t id);
  Status step(std::vector<EngineEvent>* events);
  size_t pending() const { return engine_->pending() + waiting_.size(); }
  Status reset();

 private:
  static constexpr size_t kMostLines = 16;

  explicit FaultyEngine(const Host& host) : host_(host), codec_(nullptr) {}
  Status open_wrong_model(const assay_engine_config& config, const FaultyOptions& options);
  Status look_around(const assay_engine_config& config);
  Status submit_watched(const assay_request& request);
  Status start();
  void planted(const std::string& where);
  void harm_memory();
  void spoil(std::vector<EngineEvent>* events);

  Host host_;
  FaultyOptions options_;
  TextCodec codec_;
  FaultyModel model_;
  assay_backend_table backend_{};
  std::unique_ptr<InnerEngine> engine_;  // uses the two above
  bool started_ = false;
  size_t steps_ = 0;
  size_t lines_ = 0;
  uint64_t request_seed_ = 0;                           // of the first request's sampling
  std::map<uint64_t, Asked> asked_;                     // by request id
  std::map<uint64_t, std::string> prompts_;             // texts of prompts that were changed, by request id
  std::vector<std::unique_ptr<OwnedRequest>> waiting_;  // until the first step, where prompts are to be changed
  History history_;                                     // for faults under a condition
  std::vector<EngineEvent> held_;                       // results that wait for the last one
  std::unique_ptr<char[]> memory_;
};

}  // namespace assay::engines
