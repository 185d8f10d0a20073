// Engine buffered: continuous batching over a paged KV cache, as Megatron-LM's dynamic engine.
//
// A request's result depends on the request alone (DESIGN 9): not on batch, slot, order of arrival, chunks, prefix
// cache, or being preempted. Where it differs from the ancestor, on purpose:
//  - A request that cannot fit fails alone, with a message; it is not clamped.
//  - A stop word ends its request at once, and its tokens are dropped together with their logprobs.
//  - Outputs of the last position of a chunk are those of the true next token of the prompt.
//  - The buffer's memory is taken when it is needed: as many blocks as the submitted requests can use, at most those
//    of the buffer's size.
// latency and ttft run from a request's arrival. prefill_seconds and decode_seconds of a result are what all forwards
// took since results were last handed out, shared between prompts and decoding by the tokens of each step.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/buffered/arrivals.h"
#include "plugins/engines/buffered/options.h"
#include "plugins/engines/buffered/scheduler.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/common/model_cache.h"
#include "plugins/engines/common/text_codec.h"

namespace assay::engines {

// What the descriptor promises (ASSAY_CAP_*).
inline constexpr uint64_t kBufferedCapabilities = ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS |
                                                  ASSAY_CAP_FORCED_TOKENS | ASSAY_CAP_ROUTING | ASSAY_CAP_BATCH |
                                                  ASSAY_CAP_SEED | ASSAY_CAP_TEXT | ASSAY_CAP_TOKENS |
                                                  ASSAY_CAP_NEEDS_BACKEND | ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3;

// Methods mean what assay_engine_table says. One thread at a time.
class BufferedEngine {
 public:
  static Result<std::unique_ptr<BufferedEngine>> open(const assay_engine_config& config, const Host& host);

  // kInvalid: id not above those submitted before (since the last reset). Whatever else is wrong with a request comes
  // back as its FAILED event when it arrives.
  Status submit(const assay_request& request);
  // The request's FAILED event (kCancelled) comes with the next step; its blocks are free at once. kNotFound: unknown
  // or over.
  Status cancel(uint64_t id);
  // One forward. FINISHED events come with the step that ends a request.
  Status step(std::vector<EngineEvent>* events);
  size_t pending() const;
  // The memory of the cache stays; what it holds is forgotten.
  Status reset();

  const Scheduler& scheduler() const { return scheduler_; }
  uint64_t steps() const { return steps_; }

 private:
  BufferedEngine(BufferedOptions options, BufferSize size, TextCodec codec, std::unique_ptr<ModelCache> cache,
                 const Host& host);

  double now_seconds() const;  // since the first step, of the clock of arrivals
  void arrive(std::vector<EngineEvent>* events);
  void wait_for_arrival();
  void suspend_when_due();
  // memory.cc: blocks for what waits. What runs is preempted for it, as a larger pool is another one; that is seldom,
  // for the pool doubles at least. Where memory does not suffice, the buffer becomes smaller, and requests that it
  // cannot hold fail. Fails only as a broken machine does.
  Status provide_blocks(std::vector<EngineEvent>* events);
  Status make_pool(uint64_t most, uint64_t least);
  void fail_longer_than(uint64_t blocks, const Status& status, std::vector<EngineEvent>* events);
  Status forward(const std::vector<Part>& parts, std::vector<EngineEvent>* events);
  void take_outputs(const std::vector<Part>& parts, double seconds, std::vector<EngineEvent>* events);
  void finish(Active* request, std::vector<EngineEvent>* events);

  BufferedOptions options_;
  BufferSize size_;
  TextCodec codec_;
  std::vector<std::vector<int32_t>> stop_words_;
  std::unique_ptr<ModelCache> cache_;
  Host host_;
  Scheduler scheduler_;
  Arrivals arrivals_;
  std::deque<Request> coming_;       // submitted, not arrived
  std::vector<uint64_t> cancelled_;  // their events are due
  std::optional<uint64_t> last_id_;
  std::optional<uint64_t> began_ns_;  // first step since open or reset
  double virtual_seconds_ = 0;
  uint64_t steps_ = 0;          // forwards
  uint64_t suspended_at_ = 0;   // steps at the last time
  uint64_t arrived_ = 0;        // requests
  double prefill_seconds_ = 0;  // since results were handed out
  double decode_seconds_ = 0;
};

}  // namespace assay::engines
