// Drives an engine class the way a worker does, on a toy model and a clock that only forwards move. For tests.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "core/conformance/toy_backend.h"
#include "plugins/engines/common/engine_border.h"

namespace assay::engines {

// A request as a test writes it down.
struct ToyRequest {
  std::string text = {};          // decimal ids, for the NullTokenizer
  std::vector<int32_t> ids = {};  // used instead of text when not empty
  std::vector<int32_t> forced = {};
  int32_t max_new_tokens = 8;
  int32_t top_n = 0;
  uint32_t want = ASSAY_WANT_LOGPROBS;
  assay_sampling sampling = {.temperature = 1, .top_k = 1, .reserved = 0, .top_p = 0, .seed = 1234, .prompt_index = 0};
};

struct Outcome {
  std::map<uint64_t, EngineResult> finished;
  std::map<uint64_t, Status> failed;
  std::vector<uint64_t> order;                        // of finished and failed requests
  std::map<uint64_t, std::vector<int32_t>> streamed;  // TOKEN events
};

// The host of a toy model: its clock, and the lines that were logged.
class ToyHost {
 public:
  explicit ToyHost(ToyModel* model) : model_(model) {}
  ToyHost(const ToyHost&) = delete;
  ToyHost& operator=(const ToyHost&) = delete;

  Host host() const { return Host(&host_); }
  const assay_host* raw() const { return &host_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  ToyModel* model_;
  std::vector<std::string> lines_;
  assay_host host_ = {
      sizeof(assay_host),
      ASSAY_ABI_MAJOR,
      ASSAY_ABI_MINOR,
      0,
      this,
      [](void* self, int32_t, assay_str line) { static_cast<ToyHost*>(self)->lines_.emplace_back(sdk::text(line)); },
      [](void*) -> int32_t { return 0; },
      [](void* self) { return static_cast<ToyHost*>(self)->model_->now_ns; }};
};

// The null tokenizer of 64 ids; its EOD is 63.
inline constexpr const char* kToyTokenizer = R"({"type": "NullTokenizer", "vocab_size": 64})";
inline constexpr int32_t kToyEod = 63;

template <class Engine>
Result<std::unique_ptr<Engine>> open_on_toy(ToyModel* model, const ToyHost& host, const std::string& options,
                                            const std::string& tokenizer = kToyTokenizer) {
  auto config = sdk::sized<assay_engine_config>();
  config.backend = toy_backend();
  config.model = model;
  config.model_config_json = sdk::view(std::string_view("{}"));
  config.tokenizer_json = sdk::view(tokenizer);
  config.options = sdk::view(options);
  return Engine::open(config, host.host());
}

template <class Engine>
Status submit(Engine* engine, uint64_t id, const ToyRequest& from) {
  auto request = sdk::sized<assay_request>();
  request.id = id;
  request.want = from.want;
  request.text = sdk::view(from.text);
  if (!from.ids.empty()) request.ids = sdk::view(std::span<const int32_t>(from.ids));
  request.forced = sdk::view(std::span<const int32_t>(from.forced));
  request.max_new_tokens = from.max_new_tokens;
  request.top_n = from.top_n;
  request.sampling = from.sampling;
  return engine->submit(request);
}

// One step; what happened is added to `outcome`.
template <class Engine>
Status step(Engine* engine, Outcome* outcome) {
  std::vector<EngineEvent> events;
  if (Status status = engine->step(&events); !status.ok()) return status;
  for (EngineEvent& event : events) {
    if (event.kind == ASSAY_EVENT_TOKEN) outcome->streamed[event.id].push_back(event.token);
    if (event.kind == ASSAY_EVENT_TOKEN) continue;
    outcome->order.push_back(event.id);
    if (event.kind == ASSAY_EVENT_FAILED) outcome->failed.emplace(event.id, event.failure);
    if (event.kind == ASSAY_EVENT_FINISHED) outcome->finished.emplace(event.id, std::move(*event.result));
  }
  return {};
}

// Steps until nothing is pending. kInternal when that takes more than 10,000 steps.
template <class Engine>
Status drain(Engine* engine, Outcome* outcome) {
  for (int i = 0; i < 10000 && engine->pending() > 0; ++i) {
    if (Status status = step(engine, outcome); !status.ok()) return status;
  }
  return engine->pending() == 0 ? Status() : internal("the engine does not come to an end");
}

}  // namespace assay::engines
