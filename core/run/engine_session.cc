#include "core/run/engine_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "assay/sdk.hpp"

namespace assay::run {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Closer {
  const assay_engine_table* table;
  void operator()(void* engine) const { table->close(engine); }
};
using Engine = std::unique_ptr<void, Closer>;

class Session {
 public:
  Session(const EngineInput& input, const CaseOrder& order, const SessionListener& listener,
          const std::vector<RequestChange>& changes)
      : input_(input), order_(order), listener_(listener), changes_(changes), table_(input.engine->engine()) {}

  Result<SessionResult> run() {
    Result<Engine> engine = open();
    if (!engine) return engine.status();
    submit_all(engine->get());
    while (!open_ids_.empty()) {
      if (Status stepped = step(engine->get()); !stepped.ok()) return stepped;
    }
    engine = Engine(nullptr, Closer{table_});
    std::sort(result_.records.begin(), result_.records.end(),
              [](const RequestRecord& a, const RequestRecord& b) { return request_id_less(a.id, b.id); });
    return std::move(result_);
  }

 private:
  Result<Engine> open() {
    auto config = sdk::sized<assay_engine_config>();
    config.backend = input_.backend;
    config.model = input_.model;
    config.model_config_json = sdk::view(input_.model_config_json);
    config.tokenizer_json = sdk::view(input_.tokenizer_json);
    config.options = sdk::view(order_.engine_options);
    void* handle = nullptr;
    if (Status opened = sdk::call(table_->open, &config, &handle); !opened.ok()) {
      return opened.with(fmt::format("engine {}", input_.engine->name));
    }
    return Engine(handle, Closer{table_});
  }

  void submit_all(void* engine) {
    for (size_t i = 0; i < order_.prompts.size(); ++i) {
      auto request = sdk::sized<assay_request>();
      request.id = order_.request_ids.empty() ? order_.first_id + i : i;
      if (order_.logprobs) request.want |= ASSAY_WANT_LOGPROBS;
      if (order_.routing) request.want |= ASSAY_WANT_ROUTING;
      request.text = sdk::view(order_.prompts[i]);
      if (!changes_.empty()) {
        const RequestChange& change = changes_[i];
        request.want |= ASSAY_WANT_LOGITS;
        if (!change.ids.empty()) request.ids = sdk::view(std::span<const int32_t>(change.ids));
        request.forced = sdk::view(std::span<const int32_t>(change.forced));
      }
      request.max_new_tokens = order_.max_new_tokens;
      request.top_n = order_.top_n;
      request.sampling.temperature = order_.temperature;
      request.sampling.top_k = order_.top_k;
      request.sampling.top_p = order_.top_p;
      request.sampling.seed = order_.seed;
      request.sampling.prompt_index = i;
      asked_.insert(request.id);
      const Status submitted = sdk::call(table_->submit, engine, &request);
      if (submitted.ok()) {
        open_ids_.insert(request.id);
      } else {
        fail(request.id, submitted.code(), submitted.message());
      }
    }
  }

  Status step(void* engine) {
    const assay_event* events = nullptr;
    size_t count = 0;
    size_t pending = 0;
    if (Status stepped = sdk::call(table_->step, engine, &events, &count, &pending); !stepped.ok()) {
      return stepped.with(fmt::format("engine {}, step", input_.engine->name));
    }
    Batch batch;
    for (size_t i = 0; i < count; ++i) take(events[i], &batch);
    result_.prefill_seconds += batch.prefill_seconds;
    result_.decode_seconds += batch.decode_seconds;
    result_.batch = std::max(result_.batch, batch.finished);
    if (pending > 0) return {};
    for (const uint64_t id : open_ids_) {
      fail(id, StatusCode::kInvalid, "the engine never answered it, and nothing is pending any more; fix the engine");
    }
    open_ids_.clear();
    return {};
  }

  // Requests that end in one step are taken for one batch.
  struct Batch {
    uint64_t finished = 0;
    double prefill_seconds = 0;
    double decode_seconds = 0;
  };

  void take(const assay_event& event, Batch* batch) {
    if (event.kind == ASSAY_EVENT_TOKEN) {
      if (result_.first_token_seconds == 0) result_.first_token_seconds = since(begin_);
      return;
    }
    if (open_ids_.erase(event.id) == 0) return refuse(event.id);
    if (event.kind == ASSAY_EVENT_FAILED || event.result == nullptr) {
      const std::string message(sdk::text(event.message));
      return fail(event.id, static_cast<StatusCode>(event.code), message.empty() ? "no message" : message);
    }
    const assay_result& result = *event.result;
    if (listener_.result) listener_.result(name_of(event.id), result);
    Result<RequestRecord> record = record_of(result, name_of(event.id));
    if (!record) return fail(event.id, record.status().code(), record.status().message());
    if (result_.first_token_seconds == 0) result_.first_token_seconds = since(begin_);
    result_.prompt_tokens += result.prompt_ids.size;
    result_.generated_tokens += result.tokens.size;
    result_.prefill_tokens += result.prefill_tokens;
    ++batch->finished;
    batch->prefill_seconds = std::max(batch->prefill_seconds, result.prefill_seconds);
    batch->decode_seconds = std::max(batch->decode_seconds, result.decode_seconds);
    result_.records.push_back(*std::move(record));
    if (listener_.finished) listener_.finished(name_of(event.id), result.tokens.size, since(begin_));
  }

  // An event that ends a request which is not running.
  void refuse(uint64_t id) {
    const bool known = asked_.count(id) > 0;
    result_.failed.push_back({known ? name_of(id) : std::to_string(id), StatusCode::kInvalid,
                              known ? "the engine ended it a second time; fix the engine"
                                    : "the engine answered it, but it was never asked; fix the engine"});
    if (listener_.failed) listener_.failed(result_.failed.back());
  }

  // The request's id in results.
  std::string name_of(uint64_t id) const {
    return order_.request_ids.empty() ? std::to_string(id) : order_.request_ids.at(id);
  }

  void fail(uint64_t id, StatusCode code, const std::string& message) {
    result_.failed.push_back({name_of(id), code, message});
    if (listener_.failed) listener_.failed(result_.failed.back());
  }

  const EngineInput& input_;
  const CaseOrder& order_;
  const SessionListener& listener_;
  const std::vector<RequestChange>& changes_;
  const assay_engine_table* table_;
  const Clock::time_point begin_ = Clock::now();
  std::set<uint64_t> asked_;     // ids of all requests
  std::set<uint64_t> open_ids_;  // of those that have not ended
  SessionResult result_;
};

}  // namespace

Result<SessionResult> run_session(const EngineInput& input, const CaseOrder& order, const SessionListener& listener,
                                  const std::vector<RequestChange>& changes) {
  return Session(input, order, listener, changes).run();
}

}  // namespace assay::run
