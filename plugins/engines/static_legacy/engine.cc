#include "plugins/engines/static_legacy/engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/engines/common/model_cache.h"
#include "plugins/engines/common/result_texts.h"

namespace assay::engines {

Result<std::unique_ptr<StaticEngine>> StaticEngine::open(const assay_engine_config& config, const Host& host) {
  Result<StaticOptions> options = parse_static_options(sdk::text(config.options));
  if (!options) return options.status();
  Result<TextCodec> codec = TextCodec::open(sdk::text(config.tokenizer_json));
  if (!codec) return codec.status();
  Result<std::unique_ptr<Device>> device = Device::open(config.backend, config.model, *options);
  if (!device) return device.status();
  return std::unique_ptr<StaticEngine>(new StaticEngine(*options, *std::move(codec), *std::move(device), host));
}

Status StaticEngine::submit(const assay_request& request) {
  if (last_id_ && request.id <= *last_id_) {
    return invalid("request id " + std::to_string(request.id) + " after " + std::to_string(*last_id_) +
                   ", expected ascending ids; reset the engine to start again");
  }
  queue_.push_back(make_request(request, codec_, device_->info(), options_.max_sequence_length));
  last_id_ = request.id;
  return {};
}

Status StaticEngine::cancel(uint64_t id) {
  const bool queued = std::erase_if(queue_, [id](const Request& request) { return request.id == id; }) > 0;
  if (!queued && !(batch_ && batch_->cancel(id))) {
    return not_found("request id " + std::to_string(id) + ": not waiting and not running; it is over or never was");
  }
  cancelled_.push_back(id);
  return {};
}

Status StaticEngine::step(std::vector<EngineEvent>* events) {
  if (!began_) began_ = host_.now_ns();
  for (const uint64_t id : std::exchange(cancelled_, {})) {
    events->push_back(failed_event(id, {StatusCode::kCancelled, "cancelled"}));
  }
  if (!batch_ && !queue_.empty()) start_batch(events);
  if (batch_) {
    Status status = batch_->step(device_.get(), host_, ++steps_, events);
    if (breaks_engine(status)) return status;
    if (!status.ok()) {
      fail_batch(status, events);
    } else if (batch_->done()) {
      finish_batch(events);
    }
  }
  if (pending() == 0) began_.reset();
  return {};
}

size_t StaticEngine::pending() const {
  const size_t running = batch_ ? batch_->rows().size() : 0;
  return cancelled_.size() + queue_.size() + running;
}

Status StaticEngine::reset() {
  queue_.clear();
  cancelled_.clear();
  batch_.reset();
  last_id_.reset();
  began_.reset();
  steps_ = 0;
  return {};
}

void StaticEngine::start_batch(std::vector<EngineEvent>* events) {
  std::vector<Request> requests;
  for (int32_t i = 0; i < options_.max_requests && !queue_.empty(); ++i) {
    Request request = std::move(queue_.front());
    queue_.pop_front();
    Status refusal = request.refusal;
    std::vector<Request> alone;
    alone.push_back(std::move(request));
    if (refusal.ok()) refusal = Batch::fits(alone, device_->info(), options_.max_sequence_length);
    if (refusal.ok()) {
      requests.push_back(std::move(alone.front()));
    } else {
      events->push_back(failed_event(alone.front().id, refusal));
    }
  }
  if (requests.empty()) return;
  const Status status = Batch::fits(requests, device_->info(), options_.max_sequence_length);
  if (status.ok()) {
    batch_.emplace(std::move(requests), *device_, codec_.eod());
    return;
  }
  for (const Request& request : requests) events->push_back(failed_event(request.id, status));
}

void StaticEngine::finish_batch(std::vector<EngineEvent>* events) {
  const double latency = static_cast<double>(host_.now_ns() - *began_) * 1e-9;
  for (Sequence& row : batch_->rows()) {
    EngineResult result = row.take_result();
    result.latency = latency;
    result.prompt = row.request().prompt;
    add_cut_text(codec_, row.tokens(), host_, &result);
    add_candidate_texts(codec_, &result);
    result.extra = nlohmann::ordered_json{{"engine_counters", to_json(row.counters())}}.dump();
    events->push_back(finished_event(std::move(result)));
  }
  batch_.reset();
}

void StaticEngine::fail_batch(const Status& status, std::vector<EngineEvent>* events) {
  for (const Sequence& row : batch_->rows()) events->push_back(failed_event(row.request().id, status));
  batch_.reset();
}

}  // namespace assay::engines
