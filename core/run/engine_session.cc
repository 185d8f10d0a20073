#include "core/run/engine_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "assay/sdk.hpp"
#include "core/metamorphic/way.h"
#include "core/run/stopwatch.h"

namespace assay::run {
namespace {

// The engine of a call, and the ids of its requests: from `first_id` on.
struct Opened {
  std::string name;
  const assay_engine_table* table = nullptr;
  void* handle = nullptr;
  const EngineAbout* about = nullptr;
  uint64_t first_id = 0;
};

// One call: requests submitted together.
class Call {
 public:
  Call(Opened engine, const CaseOrder& order, const SessionListener& listener,
       const std::vector<RequestChange>& changes)
      : engine_(std::move(engine)), order_(order), listener_(listener), changes_(changes) {}

  Result<SessionResult> run() {
    result_.about = *engine_.about;
    submit_all();
    while (!open_ids_.empty()) {
      if (Status stepped = step(); !stepped.ok()) return stepped;
    }
    std::sort(result_.records.begin(), result_.records.end(),
              [](const RequestRecord& a, const RequestRecord& b) { return request_id_less(a.id, b.id); });
    return std::move(result_);
  }

 private:
  void submit_all() {
    for (size_t i = 0; i < order_.prompts.size(); ++i) {
      auto request = sdk::sized<assay_request>();
      request.id = engine_.first_id + i;
      if (order_.logprobs && can(ASSAY_CAP_LOGPROBS)) request.want |= ASSAY_WANT_LOGPROBS;
      if (order_.routing && can(ASSAY_CAP_ROUTING)) request.want |= ASSAY_WANT_ROUTING;
      request.text = sdk::view(order_.prompts[i]);
      request.max_new_tokens = order_.max_new_tokens;
      request.top_n = can(ASSAY_CAP_TOP_N) ? order_.top_n : 0;
      request.sampling.temperature = order_.temperature;
      request.sampling.top_k = order_.top_k;
      request.sampling.top_p = order_.top_p;
      request.sampling.seed = order_.seed;
      request.sampling.prompt_index = i;
      if (!changes_.empty()) apply(changes_[i], &request);
      asked_.insert(request.id);
      const Status submitted = sdk::call(engine_.table->submit, engine_.handle, &request);
      if (submitted.ok()) {
        open_ids_.insert(request.id);
      } else {
        fail(request.id, submitted.code(), submitted.message(), /*refused=*/true);
      }
    }
  }

  bool can(uint64_t capability) const { return engine_.about->can(capability); }

  static void apply(const RequestChange& change, assay_request* request) {
    if (change.logits) request->want |= ASSAY_WANT_LOGITS;
    if (!change.ids.empty()) request->ids = sdk::view(std::span<const int32_t>(change.ids));
    request->forced = sdk::view(std::span<const int32_t>(change.forced));
    if (change.prompt_index) request->sampling.prompt_index = *change.prompt_index;
    if (change.max_new_tokens) request->max_new_tokens = *change.max_new_tokens;
  }

  Status step() {
    const assay_event* events = nullptr;
    size_t count = 0;
    size_t pending = 0;
    if (Status stepped = sdk::call(engine_.table->step, engine_.handle, &events, &count, &pending); !stepped.ok()) {
      return stepped.with(fmt::format("engine {}, step", engine_.name));
    }
    Batch batch;
    for (size_t i = 0; i < count; ++i) take(events[i], &batch);
    result_.prefill_seconds += batch.prefill_seconds;
    result_.decode_seconds += batch.decode_seconds;
    result_.batch = std::max(result_.batch, batch.told > 0 ? batch.told : batch.finished);
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
    uint64_t told = 0;  // by engine_counters
    double prefill_seconds = 0;
    double decode_seconds = 0;
  };

  void take(const assay_event& event, Batch* batch) {
    if (event.kind == ASSAY_EVENT_TOKEN) {
      if (result_.first_token_seconds == 0) result_.first_token_seconds = watch_.seconds();
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
    if (result_.first_token_seconds == 0) result_.first_token_seconds = watch_.seconds();
    const metamorphic::Counters counters = metamorphic::counters_of(*record);
    batch->told = std::max(batch->told, counters.batch);
    result_.restarts += counters.restarts;
    const size_t generated = std::max({result.tokens.size, result.generated_logprobs.size, result.tpot.size});
    result_.prompt_tokens += result.prompt_ids.size;
    result_.generated_tokens += generated;
    result_.prefill_tokens += result.prefill_tokens;
    ++batch->finished;
    batch->prefill_seconds = std::max(batch->prefill_seconds, result.prefill_seconds);
    batch->decode_seconds = std::max(batch->decode_seconds, result.decode_seconds);
    result_.records.push_back(*std::move(record));
    if (listener_.finished) listener_.finished(name_of(event.id), generated, watch_.seconds());
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
    const uint64_t place = id - engine_.first_id;
    return order_.request_ids.empty() ? std::to_string(order_.first_id + place) : order_.request_ids.at(place);
  }

  void fail(uint64_t id, StatusCode code, const std::string& message, bool refused = false) {
    result_.failed.push_back({.id = name_of(id), .code = code, .message = message, .refused = refused});
    if (listener_.failed) listener_.failed(result_.failed.back());
  }

  const Opened engine_;
  const CaseOrder& order_;
  const SessionListener& listener_;
  const std::vector<RequestChange>& changes_;
  const Stopwatch watch_;        // since the call
  std::set<uint64_t> asked_;     // ids of all requests
  std::set<uint64_t> open_ids_;  // of those that have not ended
  SessionResult result_;
};

}  // namespace

Result<EngineSession> EngineSession::open(const EngineInput& input, const std::string& options) {
  const assay_engine_table* table = input.engine->engine();
  auto config = sdk::sized<assay_engine_config>();
  config.backend = input.backend;
  config.model = input.model;
  config.model_config_json = sdk::view(input.model_config_json);
  config.tokenizer_json = sdk::view(input.tokenizer_json);
  config.options = sdk::view(options);
  void* handle = nullptr;
  if (Status opened = sdk::call(table->open, &config, &handle); !opened.ok()) {
    const Status named = opened.with(fmt::format("engine {}", input.engine->name));
    // No request ran yet: the machine lacks memory, the engine did not die of it.
    return named.code() == StatusCode::kExhausted ? infra(named.message()) : named;
  }
  std::unique_ptr<void, Closer> owned(handle, Closer{table});
  Result<EngineAbout> about = about_of(*input.engine, handle);
  if (!about) return about.status();
  return EngineSession(input.engine->name, table, std::move(owned), *std::move(about));
}

Result<SessionResult> EngineSession::call(const CaseOrder& order, const SessionListener& listener,
                                          const std::vector<RequestChange>& changes) {
  const uint64_t first = order.request_ids.empty() ? std::max(next_id_, order.first_id) : next_id_;
  next_id_ = first + order.prompts.size();
  const Opened opened{.name = name_, .table = table_, .handle = engine_.get(), .about = &about_, .first_id = first};
  return Call(opened, order, listener, changes).run();
}

Status EngineSession::reset() {
  if (Status done = sdk::call(table_->reset, engine_.get()); !done.ok()) {
    return done.with(fmt::format("engine {}, reset", name_));
  }
  next_id_ = 0;
  return {};
}

Result<SessionResult> run_session(const EngineInput& input, const CaseOrder& order, const SessionListener& listener,
                                  const std::vector<RequestChange>& changes) {
  Result<EngineSession> session = EngineSession::open(input, order.engine_options);
  if (!session) return session.status();
  return session->call(order, listener, changes);
}

}  // namespace assay::run
