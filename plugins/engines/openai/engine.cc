#include "plugins/engines/openai/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/engines/openai/schedule.h"

namespace assay::engines::openai {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kStepSeconds = 0.05;    // the longest that one step waits
constexpr double kServerSeconds = 0.02;  // between looks at a server of ours

std::string dumped(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

void add_top(const AnswerToken& token, CandidateLists* lists) {
  for (const TokenCandidate& candidate : token.top) {
    lists->ids.push_back(candidate.id);
    lists->logprobs.push_back(candidate.logprob);
    lists->texts.push_back(candidate.text.empty() ? std::nullopt : std::optional(candidate.text));
  }
  lists->counts.push_back(static_cast<uint32_t>(token.top.size()));
}

Status check_request(const assay_request& request, const OpenaiOptions& options, const Found& found) {
  const assay_sampling& sampling = request.sampling;
  if (request.forced.size > 0) return unsupported("engine openai: a server cannot be forced to tokens");
  if (request.max_new_tokens < 0) {
    return invalid(fmt::format("max_new_tokens is {}, expected 0 or more", request.max_new_tokens));
  }
  if (request.ids.data != nullptr && options.chat) {
    return unsupported("engine openai: the chat API takes text, not token ids; use the completions API");
  }
  if (request.top_n > found.most_top_n && found.most_top_n > 0) {
    return unsupported(
        fmt::format("engine openai: top {} logprobs are asked for, the server gives at most {}; lower "
                    "--top-n-logprobs or raise the server's limit",
                    request.top_n, found.most_top_n));
  }
  if (sampling.top_k != 1 && !found.seed_broken.empty()) {
    return invalid("engine openai: tokens are to be drawn with a seed, but the server does not keep to it: " +
                   found.seed_broken);
  }
  if (!options.stop_words.empty() && !found.stop_broken.empty()) {
    return invalid("engine openai: the server does not keep to stop words: " + found.stop_broken);
  }
  return {};
}

Drawing drawing_of(const assay_sampling& sampling) {
  Drawing drawing;
  drawing.greedy = sampling.top_k == 1;
  if (drawing.greedy) return drawing;
  drawing.temperature = sampling.temperature;
  drawing.top_p = sampling.top_p;
  drawing.top_k = sampling.top_k;
  drawing.seed = static_cast<int64_t>((sampling.seed + sampling.prompt_index) & 0x7fffffff);
  return drawing;
}

}  // namespace

struct OpenaiEngine::Job {
  uint64_t id = 0;
  BodyInput input;
  bool want_logprobs = false;
  bool cancelled = false;
  double due = 0;         // seconds of the engine's clock; of a job without a place, 0
  uint64_t transfer = 0;  // 0: not with the server
  int32_t tries = 0;
  std::string last_failure;  // of the try before the one that runs or is waited for
  size_t order = 0;          // place among those sent
  size_t in_flight = 0;      // most requests with the server at once, itself included
  double sent = 0;
  std::unique_ptr<StreamReader> stream;
  size_t fresh = 0;           // tokens that came since the last step
  double last = 0;            // when the last token came
  std::vector<double> times;  // seconds of each token that came
};

OpenaiEngine::OpenaiEngine(std::unique_ptr<OpenaiOptions> options, const Host& host)
    : options_(std::move(options)), host_(host) {}
OpenaiEngine::~OpenaiEngine() = default;

double OpenaiEngine::now() const { return static_cast<double>(host_.now_ns()) * 1e-9; }

Result<std::unique_ptr<OpenaiEngine>> OpenaiEngine::open(const assay_engine_config& config, const Host& host) {
  const std::string json(sdk::text(config.options));
  Result<OpenaiOptions> options = parse_openai_options(json);
  if (!options) return options.status();
  std::unique_ptr<OpenaiEngine> engine(new OpenaiEngine(std::make_unique<OpenaiOptions>(*std::move(options)), host));
  Result<TextCodec> codec = TextCodec::open(engine->options_->tokenizer);
  if (!codec) return codec.status().with("options of engine openai: tokenizer");
  engine->codec_ = *std::move(codec);
  Result<std::shared_ptr<Place>> place = place_for(*engine->options_, json, host);
  if (!place) return place.status();
  engine->place_ = *place;
  Result<std::unique_ptr<Wire>> wire = Wire::open(*engine->options_, engine->place_->url, host);
  if (!wire) return wire.status();
  engine->wire_ = *std::move(wire);
  const Found& found = engine->place_->found;
  engine->wire_->set_answering(found.answering);
  std::map<std::string, std::string> facts = found.facts;
  engine->capabilities_ = found.capabilities;
  if (engine->codec_.has_tokenizer() && found.ids == IdForm::kNone) {
    engine->capabilities_ |= ASSAY_CAP_TOKENS;
    facts["tokens"] = "derived: the text encoded by the option tokenizer";
  }
  engine->facts_ = dumped(facts);
  return engine;
}

Status OpenaiEngine::info(assay_engine_info* about) {
  about->capabilities = capabilities_;
  about->facts = sdk::view(facts_);
  return {};
}

Status OpenaiEngine::submit(const assay_request& request) {
  const Found& found = place_->found;
  if (Status refused = check_request(request, *options_, found); !refused.ok()) return refused;
  auto job = std::make_unique<Job>();
  job->id = request.id;
  job->want_logprobs = (request.want & ASSAY_WANT_LOGPROBS) != 0;
  BodyInput& input = job->input;
  input.model = found.model;
  Asked& asked = input.asked;
  if (request.ids.data != nullptr) {
    const std::span<const int32_t> ids = sdk::ids(request.ids);
    input.prompt_ids.assign(ids.begin(), ids.end());
    asked.prompt_ids = ids.size();
  } else {
    asked.prompt = sdk::text(request.text);
  }
  asked.max_tokens = request.max_new_tokens;
  asked.top_n = found.most_top_n > 0 ? std::max(request.top_n, 0) : 0;
  // With logprobs come the texts of tokens, and ids of some servers.
  asked.logprobs = found.logprobs && (job->want_logprobs || asked.top_n > 0 || found.ids != IdForm::kNone);
  asked.stop_words = options_->stop_words;
  asked.keep_end_token = options_->keep_end_token;
  const bool of_prompt = job->want_logprobs && found.logprobs;
  asked.echo = of_prompt && found.prompt == PromptLogprobs::kEcho && asked.prompt_ids == 0;
  asked.prompt_list = of_prompt && found.prompt == PromptLogprobs::kList;
  input.ids = found.ids;
  input.drawing = drawing_of(request.sampling);
  input.stream = options_->stream && !asked.echo && !asked.prompt_list;
  jobs_.push_back(std::move(job));
  return {};
}

Status OpenaiEngine::cancel(uint64_t id) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [id](const auto& job) { return job->id == id && !job->cancelled; });
  if (found == jobs_.end()) return not_found(fmt::format("request id {}: not waiting", id));
  (*found)->cancelled = true;
  return {};
}

Status OpenaiEngine::reset() {
  for (const auto& job : jobs_) {
    if (job->transfer != 0) wire_->client().drop(job->transfer);
  }
  jobs_.clear();
  arranged_ = 0;
  return {};
}

// Gives those submitted since the last step their places and times.
void OpenaiEngine::arrange() {
  if (arranged_ == jobs_.size()) return;
  std::vector<std::unique_ptr<Job>> fresh(std::make_move_iterator(jobs_.begin() + static_cast<ptrdiff_t>(arranged_)),
                                          std::make_move_iterator(jobs_.end()));
  jobs_.resize(arranged_);
  const double begin = now();
  for (const Arrival& arrival : schedule(fresh.size(), *options_)) {
    std::unique_ptr<Job> job = std::move(fresh[arrival.place]);
    job->due = begin + arrival.seconds;
    job->order = jobs_.size();
    jobs_.push_back(std::move(job));
  }
  arranged_ = jobs_.size();
}

// How long nothing is due, seconds.
double OpenaiEngine::send_due_ones() {
  double wait = kStepSeconds;
  if (case_is_over()) return wait;
  const double time = now();
  for (const auto& job : jobs_) {
    if (wire_->client().running() >= static_cast<size_t>(options_->concurrency)) break;
    if (job->transfer != 0) continue;
    if (job->due <= time) {
      send(job.get());
    } else {
      wait = std::min(wait, job->due - time);
    }
  }
  const size_t running = wire_->client().running();
  for (const auto& job : jobs_) {
    if (job->transfer != 0) job->in_flight = std::max(job->in_flight, running);
  }
  return wait;
}

void OpenaiEngine::send(Job* job) {
  ++job->tries;
  HttpRequest request = wire_->ask(job->input);
  job->times.clear();
  job->fresh = 0;
  job->sent = job->last = now();
  if (job->input.stream) {
    job->stream = std::make_unique<StreamReader>(options_->chat, job->input.asked.max_tokens, wire_->cleaner());
    request.sink = [this, job](std::string_view bytes) {
      const Result<size_t> fresh = job->stream->take(bytes);
      if (!fresh) return false;
      const double time = now();
      for (size_t i = 0; i < *fresh; ++i) job->times.push_back((time - job->last) / static_cast<double>(*fresh));
      if (*fresh > 0) job->last = time;
      job->fresh += *fresh;
      return true;
    };
  }
  job->transfer = wire_->client().start(std::move(request));
}

Status OpenaiEngine::step(std::vector<EngineEvent>* events) {
  if (host_.cancelled()) return Status(StatusCode::kCancelled, "the run is to stop");
  if (Status lives = place_->check(); !lives.ok()) return lives;
  arrange();
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (!(*job)->cancelled) {
      ++job;
      continue;
    }
    if ((*job)->transfer != 0) wire_->client().drop((*job)->transfer);
    events->push_back(failed_event((*job)->id, Status(StatusCode::kCancelled, "cancelled")));
    job = jobs_.erase(job);
  }
  arranged_ = jobs_.size();
  const double wait = send_due_ones();
  const std::vector<HttpAnswer> ended = wire_->client().poll(place_->server ? std::min(wait, kServerSeconds) : wait);
  const bool idle = ended.empty() && wire_->client().running() == 0;
  if (idle && wait > 0 && !jobs_.empty() && !case_is_over()) wire_->nap(wait);
  for (const auto& job : jobs_) note_tokens(job.get(), events);
  for (const HttpAnswer& answer : ended) {
    if (!answer.transport.ok() || answer.code >= 500) {
      if (Status lives = place_->check(); !lives.ok()) return lives;  // it died of this
    }
    take(answer, events);
  }
  if (case_is_over()) fail_unsent(events);  // after those that the server kept, which say why
  arranged_ = jobs_.size();
  return {};
}

bool OpenaiEngine::case_is_over() const { return CaseTime::Clock::now() >= options_->limits.ends; }

void OpenaiEngine::fail_unsent(std::vector<EngineEvent>* events) {
  std::erase_if(jobs_, [&](const std::unique_ptr<Job>& job) {
    if (job->transfer != 0) return false;
    std::string text = "it was not sent: " + options_->limits.ends_text;
    if (job->tries > 0) {
      text = fmt::format("it waited for try {} of {}: {}; the one before: {}", job->tries + 1, options_->retries + 1,
                         options_->limits.ends_text, job->last_failure);
    }
    events->push_back(failed_event(job->id, infra(text)));
    return true;
  });
}

void OpenaiEngine::note_tokens(Job* job, std::vector<EngineEvent>* events) {
  for (; job->fresh > 0; --job->fresh) events->push_back(token_event(job->id, -1));
}

void OpenaiEngine::take(const HttpAnswer& answer, std::vector<EngineEvent>* events) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&answer](const auto& job) { return job->transfer == answer.id; });
  if (found == jobs_.end()) return;
  Job& job = **found;
  if (const std::optional<double> pause = wire_->pause_after(answer, job.tries)) {
    const std::string why = answer.transport.ok() ? fmt::format("HTTP {}", answer.code) : answer.transport.message();
    host_.log(ASSAY_LOG_WARN, wire_->clean(fmt::format("request {}: {}; try {} of {} in {:g} s", job.id, why,
                                                       job.tries + 1, options_->retries + 1, *pause)));
    job.last_failure = wire_->read(answer, job.stream.get(), job.input.asked).status().message();
    job.transfer = 0;
    job.due = now() + *pause;
    return;
  }
  Result<Checked> checked = wire_->read(answer, job.stream.get(), job.input.asked);
  if (!checked) {
    std::string tried = job.tries > 1 ? fmt::format(" (after {} tries)", job.tries) : "";
    if (job.tries > 1 && case_is_over()) tried += "; the one before: " + job.last_failure;
    events->push_back(failed_event(job.id, Status(checked.status().code(), checked.status().message() + tried)));
  } else if (place_->found.ids != IdForm::kNone && !checked->tokens.empty() && !has_ids(checked->tokens)) {
    events->push_back(failed_event(job.id, invalid("the answer has no token ids, those of the probes had")));
  } else {
    events->push_back(finished_event(result_of(job, *std::move(checked))));
  }
  jobs_.erase(found);
}

EngineResult OpenaiEngine::result_of(const Job& job, Checked checked) const {
  EngineResult result;
  result.id = job.id;
  if (job.input.prompt_ids.empty()) result.prompt = job.input.asked.prompt;
  result.latency = now() - job.sent;
  fill_tokens(job, checked, &result);
  const auto count = static_cast<size_t>(checked.count.value_or(0));
  if (!job.times.empty() && job.times.size() >= count && count > 0) {
    result.tpot.assign(job.times.begin(), job.times.begin() + static_cast<ptrdiff_t>(count));
    result.prefill_seconds = result.tpot[0];
    for (size_t i = 1; i < count; ++i) result.decode_seconds += result.tpot[i];
  }
  result.prefill_tokens =
      static_cast<uint64_t>(std::max<int64_t>(checked.prompt_count.value_or(0) - checked.cached, 0));
  Json counters = {{"batch", job.in_flight},
                   {"cached_tokens", checked.cached},
                   {"order", job.order},
                   {"retries", job.tries - 1},
                   {"replaced_bytes", checked.replaced}};
  Json extra = {{"finish_reason", checked.finish_reason}};
  if (place_->found.ids == IdForm::kNone && !result.tokens.empty()) extra["derived_tokens"] = true;
  if (checked.dropped_end) extra["dropped_end_token"] = true;
  extra["engine_counters"] = std::move(counters);
  result.extra = dumped(extra);
  result.text = std::move(checked.text);
  return result;
}

void OpenaiEngine::fill_tokens(const Job& job, const Checked& checked, EngineResult* result) const {
  const Asked& asked = job.input.asked;
  const std::vector<AnswerToken>& tokens = checked.tokens;
  if (place_->found.ids != IdForm::kNone) {
    for (const AnswerToken& token : tokens) result->tokens.push_back(token.id);
  } else if (codec_.has_tokenizer()) {
    const Result<std::vector<int32_t>> ids = codec_.encode(checked.text);
    const bool fits =
        ids.ok() && codec_.decode(*ids) == checked.text && (tokens.empty() || ids->size() == tokens.size());
    if (fits) {
      result->tokens = *ids;
    } else {
      host_.log(ASSAY_LOG_WARN, fmt::format("request {}: the option tokenizer does not give the text's {} tokens back",
                                            job.id, checked.count.value_or(-1)));
    }
  }
  if (job.want_logprobs && asked.logprobs) {
    for (const AnswerToken& token : tokens) result->generated_logprobs.push_back(*token.logprob);
  }
  if (asked.top_n > 0 && asked.logprobs) {
    for (const AnswerToken& token : tokens) add_top(token, &result->generated_top_n);
  }
  const std::vector<AnswerToken>& prompt = checked.prompt_tokens;
  if (has_ids(prompt)) {
    for (const AnswerToken& token : prompt) result->prompt_ids.push_back(token.id);
  } else {
    result->prompt_ids = job.input.prompt_ids;
  }
  if (!asked.echo && !asked.prompt_list) return;
  for (size_t i = 1; i < prompt.size(); ++i) {
    result->prompt_logprobs.push_back(*prompt[i].logprob);
    if (asked.top_n > 0) add_top(prompt[i], &result->prompt_top_n);
  }
}

}  // namespace assay::engines::openai
