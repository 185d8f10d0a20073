#include "plugins/engines/buffered/engine.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/engines/buffered/limits.h"
#include "plugins/engines/buffered/report.h"
#include "plugins/engines/buffered/stop_words.h"
#include "plugins/engines/common/result_texts.h"

namespace assay::engines {
namespace {

constexpr double kLongestNap = 0.01;  // seconds; then the host gets a chance to stop

}  // namespace

BufferedEngine::BufferedEngine(BufferedOptions options, BufferSize size, TextCodec codec,
                               std::unique_ptr<ModelCache> cache, const Host& host)
    : options_(std::move(options)),
      size_(size),
      codec_(std::move(codec)),
      cache_(std::move(cache)),
      host_(host),
      scheduler_(scheduler_limits(options_, size_)),
      arrivals_(options_) {}

Result<std::unique_ptr<BufferedEngine>> BufferedEngine::open(const assay_engine_config& config, const Host& host) {
  Result<BufferedOptions> options = parse_buffered_options(sdk::text(config.options));
  if (!options) return options.status();
  Result<TextCodec> codec = TextCodec::open(sdk::text(config.tokenizer_json));
  if (!codec) return codec.status();
  Result<std::vector<std::vector<int32_t>>> stop_words = encode_stop_words(options->stop_words, *codec);
  if (!stop_words) return stop_words.status();
  Result<std::unique_ptr<ModelCache>> cache = ModelCache::open("buffered", config.backend, config.model);
  if (!cache) return cache.status();
  if (options->termination_id && *options->termination_id >= (*cache)->info().vocab_size) {
    return invalid("termination_id " + std::to_string(*options->termination_id) +
                   " is outside of the model's vocabulary 0 .. " + std::to_string((*cache)->info().vocab_size - 1) +
                   "; -1 stands for none");
  }
  const Result<BufferSize> size = size_buffer(*options, sdk::text(config.model_config_json));
  if (!size) return size.status();
  std::unique_ptr<BufferedEngine> engine(
      new BufferedEngine(*std::move(options), *size, *std::move(codec), *std::move(cache), host));
  engine->stop_words_ = *std::move(stop_words);
  return engine;
}

Status BufferedEngine::submit(const assay_request& request) {
  if (last_id_ && request.id <= *last_id_) {
    return invalid("request id " + std::to_string(request.id) + " after " + std::to_string(*last_id_) +
                   ", expected ascending ids; reset the engine to start again");
  }
  const int32_t limit = options_.max_sequence_length > 0 ? options_.max_sequence_length : INT32_MAX;
  coming_.push_back(make_request(request, codec_, cache_->info(), limit));
  Request& made = coming_.back();
  if (made.refusal.ok()) made.refusal = fits(made, options_, size_, cache_->info());
  last_id_ = request.id;
  return {};
}

Status BufferedEngine::cancel(uint64_t id) {
  const bool coming = std::erase_if(coming_, [id](const Request& request) { return request.id == id; }) > 0;
  if (!coming && !scheduler_.remove(id)) {
    return not_found("request id " + std::to_string(id) + ": not waiting and not running; it is over or never was");
  }
  cancelled_.push_back(id);
  return {};
}

Status BufferedEngine::step(std::vector<EngineEvent>* events) {
  if (!began_ns_) began_ns_ = host_.now_ns();
  for (const uint64_t id : std::exchange(cancelled_, {})) {
    events->push_back(failed_event(id, {StatusCode::kCancelled, "cancelled"}));
  }
  arrive(events);
  if (scheduler_.waiting().empty() && scheduler_.running().empty()) {
    if (!coming_.empty()) wait_for_arrival();
    return {};
  }
  suspend_when_due();
  if (Status provided = provide_blocks(events); !provided.ok()) return provided;
  if (scheduler_.blocks() == 0) return {};  // memory did not suffice for the longest: the others come next
  const std::vector<Part> parts = scheduler_.plan();
  if (parts.empty()) return internal("engine buffered: requests wait, but none can run; fix the scheduler");
  return forward(parts, events);
}

double BufferedEngine::now_seconds() const {
  if (options_.virtual_step_seconds > 0) return virtual_seconds_;
  return static_cast<double>(host_.now_ns() - *began_ns_) * 1e-9;
}

void BufferedEngine::arrive(std::vector<EngineEvent>* events) {
  for (; !coming_.empty() && arrivals_.due(steps_, now_seconds()); coming_.pop_front()) {
    arrivals_.take();
    Request& request = coming_.front();
    if (request.refusal.ok()) request.refusal = fits(request, options_, size_, cache_->info());  // it may have shrunk
    if (!request.refusal.ok()) {
      events->push_back(failed_event(request.id, request.refusal));
      continue;
    }
    SequenceSetting setting;
    setting.new_tokens = request.max_new_tokens;
    setting.sampling = request.sampling;
    setting.eod = codec_.eod();
    if (options_.termination_id) setting.eod = static_cast<int32_t>(*options_.termination_id);
    setting.keep_eod = options_.results == ResultForm::kDynamic;
    setting.skip_prompt = options_.skip_prompt_logprobs;
    setting.stop_words = &stop_words_;
    setting.moe_layers = static_cast<size_t>(cache_->info().moe_layers);
    setting.moe_topk = static_cast<size_t>(cache_->info().moe_topk);
    setting.vocab_size = static_cast<size_t>(cache_->info().vocab_size);
    auto active = std::make_unique<Active>(Sequence(std::move(request), setting), arrived_++);
    active->arrived_ns = host_.now_ns();
    if (active->sequence.done()) {  // nothing to compute
      finish(active.get(), events);
    } else {
      scheduler_.add(std::move(active));
    }
  }
}

void BufferedEngine::wait_for_arrival() {
  if (options_.requests_per_step > 0) {
    ++steps_;
    return;
  }
  const double next = arrivals_.next_seconds();
  if (options_.virtual_step_seconds > 0) {
    virtual_seconds_ = std::max(virtual_seconds_, next);
    return;
  }
  const double nap = std::clamp(next - now_seconds(), 0.0, kLongestNap);
  std::this_thread::sleep_for(std::chrono::duration<double>(nap));
}

void BufferedEngine::suspend_when_due() {
  if (options_.suspend_interval == 0) return;
  if (steps_ - suspended_at_ < static_cast<uint64_t>(options_.suspend_interval)) return;
  if (scheduler_.suspend()) suspended_at_ = steps_;
}

Status BufferedEngine::forward(const std::vector<Part>& parts, std::vector<EngineEvent>* events) {
  std::vector<assay_run> runs;
  std::vector<float*> margins;
  bool wants_margins = false;
  for (const Part& part : parts) {
    Sequence& sequence = part.request->sequence;
    sequence.set_blocks(part.request->blocks);
    runs.push_back(sequence.next(part.start, part.end));
    margins.push_back(sequence.margins());
    wants_margins = wants_margins || margins.back() != nullptr;
  }
  if (!wants_margins) margins.clear();
  ++steps_;
  for (const Part& part : parts) part.request->step = steps_;
  const uint64_t before = host_.now_ns();
  Status status = cache_->forward(runs, margins);
  virtual_seconds_ += options_.virtual_step_seconds;
  if (breaks_engine(status)) return status;
  if (status.ok()) {
    take_outputs(parts, static_cast<double>(host_.now_ns() - before) * 1e-9, events);
    return {};
  }
  for (const Part& part : parts) {
    const uint64_t id = part.request->sequence.request().id;
    scheduler_.remove(id);
    events->push_back(failed_event(id, status));
  }
  return {};
}

void BufferedEngine::take_outputs(const std::vector<Part>& parts, double seconds, std::vector<EngineEvent>* events) {
  size_t prompt_tokens = 0;
  size_t tokens = 0;
  std::vector<Active*> ended;
  for (const std::unique_ptr<Active>& request : scheduler_.running()) {
    if (request->step != steps_) request->sequence.wait(seconds);
  }
  for (const Part& part : parts) {
    Active* request = part.request;
    request->sequence.counters().saw_batch(parts.size());
    tokens += part.end - part.start;
    if (part.start < request->sequence.prompt_size()) prompt_tokens += part.end - part.start;
    const std::optional<int32_t> token = request->sequence.absorb(seconds);
    scheduler_.advance(part);
    if (token) {
      if (request->first_token_ns == 0) request->first_token_ns = host_.now_ns();
      events->push_back(token_event(request->sequence.request().id, *token));
    }
    if (request->sequence.done()) ended.push_back(request);
  }
  const double share = static_cast<double>(prompt_tokens) / static_cast<double>(tokens);
  prefill_seconds_ += seconds * share;
  decode_seconds_ += seconds * (1 - share);
  for (Active* request : ended) {
    finish(request, events);
    scheduler_.remove(request->sequence.request().id);
  }
  if (!ended.empty()) prefill_seconds_ = decode_seconds_ = 0;
}

void BufferedEngine::finish(Active* request, std::vector<EngineEvent>* events) {
  request->sequence.counters().steps = steps_;
  EngineResult result = request->sequence.take_result();
  result.prompt = request->sequence.request().prompt;
  result.prefill_seconds = prefill_seconds_;
  result.decode_seconds = decode_seconds_;
  if (options_.results == ResultForm::kStatic) {
    add_cut_text(codec_, request->sequence.tokens(), host_, &result);
  } else {
    result.text = codec_.decode(result.tokens);
  }
  add_candidate_texts(codec_, &result);
  add_report(*request, host_.now_ns(), options_.results, &result);
  events->push_back(finished_event(std::move(result)));
}

size_t BufferedEngine::pending() const {
  return cancelled_.size() + coming_.size() + scheduler_.waiting().size() + scheduler_.running().size();
}

Status BufferedEngine::reset() {
  while (!scheduler_.running().empty()) scheduler_.remove(scheduler_.running().back()->sequence.request().id);
  while (!scheduler_.waiting().empty()) scheduler_.remove(scheduler_.waiting().back()->sequence.request().id);
  scheduler_.use(cache_->block_count());
  arrivals_ = Arrivals(options_);
  coming_.clear();
  cancelled_.clear();
  last_id_.reset();
  began_ns_.reset();
  virtual_seconds_ = 0;
  steps_ = suspended_at_ = arrived_ = 0;
  prefill_seconds_ = decode_seconds_ = 0;
  return {};
}

}  // namespace assay::engines
