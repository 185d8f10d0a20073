// Engine static_legacy: batches of consecutive requests, each run to its end, as Megatron-LM's legacy static engine.
//
// Where it differs from the ancestor, on purpose:
//  - A batch that is too long fails its own requests only; a request that cannot run fails alone, and keeps its place
//    in the count of max_requests.
//  - tpot[0] of a prompt longer than the shortest of its batch holds every forward up to its first token; the ancestor
//    sums one too few and shifts the rest.
//  - latency runs from the first step after the engine was idle to the end of the request's batch; for the last batch
//    that is the ancestor's value, the time of the whole call.
//  - Among equal largest logits the lowest id wins.
// The ancestor's seconds are of CUDA events, ours of the host's clock around a forward that waits.
// prefill_seconds and decode_seconds are what a request waited for before and after its first token, forwards alone:
// the requests of a batch wait at the same time.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/common/text_codec.h"
#include "plugins/engines/static_legacy/batch.h"
#include "plugins/engines/static_legacy/device.h"
#include "plugins/engines/static_legacy/options.h"

namespace assay::engines {

// What the descriptor promises (ASSAY_CAP_*).
inline constexpr uint64_t kStaticCapabilities = ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS |
                                                ASSAY_CAP_FORCED_TOKENS | ASSAY_CAP_ROUTING | ASSAY_CAP_BATCH |
                                                ASSAY_CAP_SEED | ASSAY_CAP_TEXT | ASSAY_CAP_TOKENS |
                                                ASSAY_CAP_NEEDS_BACKEND | ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3;

// Methods mean what assay_engine_table says. One thread at a time.
class StaticEngine {
 public:
  static Result<std::unique_ptr<StaticEngine>> open(const assay_engine_config& config, const Host& host);

  // kInvalid: id not above those submitted before (since the last reset). Whatever else is wrong with a request comes
  // back as its FAILED event.
  Status submit(const assay_request& request);
  // The request's FAILED event (kCancelled) comes with the next step. kNotFound: unknown or over.
  Status cancel(uint64_t id);
  // One forward of the current batch. FINISHED events come at the end of the batch, in submission order.
  Status step(std::vector<EngineEvent>* events);
  size_t pending() const;
  Status reset();

  std::optional<int32_t> eod() const { return codec_.eod(); }

 private:
  StaticEngine(StaticOptions options, TextCodec codec, std::unique_ptr<Device> device, const Host& host)
      : options_(options), codec_(std::move(codec)), device_(std::move(device)), host_(host) {}

  void start_batch(std::vector<EngineEvent>* events);
  void finish_batch(std::vector<EngineEvent>* events);
  void fail_batch(const Status& status, std::vector<EngineEvent>* events);

  StaticOptions options_;
  TextCodec codec_;
  std::unique_ptr<Device> device_;
  Host host_;
  std::deque<Request> queue_;
  std::vector<uint64_t> cancelled_;  // their events are due
  std::optional<Batch> batch_;
  std::optional<uint64_t> last_id_;
  std::optional<uint64_t> began_;  // ns; first step since the engine was idle
  uint64_t steps_ = 0;             // forwards since open or reset
};

}  // namespace assay::engines
