#include "plugins/engines/faulty/faulty.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/engines/faulty/conditions.h"
#include "plugins/engines/faulty/process_faults.h"

namespace assay::engines {
namespace {

constexpr size_t kEarlyForwards = 16;                         // process faults strike within so many steps
constexpr size_t kBloat = size_t{256} << 20;                  // bytes
constexpr size_t kBloatPiece = size_t{16} << 20;              // bytes
constexpr auto kBloatPause = std::chrono::milliseconds(300);  // whoever watches memory has to have a chance

// "cpu avx512 x2" has two; 1 where the device does not say.
size_t threads_of(std::string_view device) {
  const size_t mark = device.rfind(" x");
  if (mark == std::string_view::npos) return 1;
  size_t threads = 0;
  std::from_chars(device.data() + mark + 2, device.data() + device.size(), threads);
  return std::max<size_t>(threads, 1);
}

}  // namespace

Result<std::unique_ptr<FaultyEngine>> FaultyEngine::open(const assay_engine_config& config, const Host& host) {
  Result<FaultyOptions> options = parse_faulty_options(sdk::text(config.options));
  if (!options) return options.status();
  Result<TextCodec> codec = TextCodec::open(sdk::text(config.tokenizer_json));
  if (!codec) return codec.status();
  std::unique_ptr<FaultyEngine> engine(new FaultyEngine(host));
  engine->codec_ = *std::move(codec);
  engine->options_ = *std::move(options);
  if (const std::string_view ignored = ignored_option(engine->options_.fault); !ignored.empty()) {
    engine->planted("option " + std::string(ignored));
    engine->options_.rest = without_option(engine->options_.rest, ignored);
  }
  assay_engine_config inner = config;
  inner.options = sdk::view(engine->options_.rest);
  if (config.backend != nullptr) {
    engine->model_.backend = config.backend;
    engine->model_.model = config.model;
    engine->model_.fault = engine->options_.fault;
    engine->model_.planted = [self = engine.get()](const std::string& where) { self->planted(where); };
    if (Status opened = engine->open_wrong_model(config, engine->options_); !opened.ok()) return opened;
    if (Status looked = engine->look_around(config); !looked.ok()) return looked;
    engine->backend_ = faulty_backend(*config.backend);
    inner.backend = &engine->backend_;
    inner.model = &engine->model_;
  }
  Result<std::unique_ptr<InnerEngine>> real = open_inner(engine->options_.engine, inner, host);
  if (!real) return real.status();
  engine->engine_ = *std::move(real);
  return engine;
}

FaultyEngine::~FaultyEngine() {
  engine_.reset();
  if (model_.wrong_model != nullptr) model_.backend->close(model_.wrong_model);
}

Status FaultyEngine::open_wrong_model(const assay_engine_config& config, const FaultyOptions& options) {
  const std::string wrong = wrong_model_config(options.fault, std::string(sdk::text(config.model_config_json)));
  if (wrong.empty()) return {};
  if (options.checkpoint.empty()) {
    return invalid("options of engine faulty: fault " + std::string(to_string(options.fault)) +
                   " needs checkpoint, the folder that the case loads");
  }
  auto source = sdk::sized<assay_model_source>();
  source.config_json = sdk::view(wrong);
  source.checkpoint = sdk::view(options.checkpoint);
  source.options = sdk::view(options.backend_options);
  return sdk::call(config.backend->open, &source, &model_.wrong_model).with("engine faulty: wrong model");
}

// What the conditions of faults ask for.
Status FaultyEngine::look_around(const assay_engine_config& config) {
  auto info = sdk::sized<assay_model_info>();
  if (Status asked = sdk::call(config.backend->model_info, config.model, &info); !asked.ok()) return asked;
  model_.around.buffered = options_.engine == Inner::kBuffered;
  model_.around.prefix_caching = is_set(options_.rest, "prefix_caching");
  model_.around.first_model = is_first_model(config.model);
  model_.around.threads = threads_of(sdk::text(info.device));
  return {};
}

// The backend knows the request by its place in model_.watched.
Status FaultyEngine::submit_watched(const assay_request& request) {
  Result<std::vector<int32_t>> ids = std::vector<int32_t>();
  if (request.ids.data != nullptr) {
    ids->assign(request.ids.data, request.ids.data + request.ids.size);
  } else {
    ids = codec_.encode(std::string(sdk::text(request.text)));
  }
  if (!ids) ids = std::vector<int32_t>();  // the engine says what is wrong
  const bool idle = pending() == 0;
  assay_request watched = request;
  watched.sampling.prompt_index = model_.watched.size();
  if (Status status = engine_->submit(watched); !status.ok()) return status;
  model_.watched.push_back(history_.asked(request.sampling.prompt_index, *ids, idle));
  return {};
}

Status FaultyEngine::submit(const assay_request& request) {
  const bool changes_prompts = info_of(options_.fault).family == Family::kRequest;
  if (asked_.empty()) request_seed_ = request.sampling.seed;
  if (info_of(options_.fault).family == Family::kCondition) {
    if (Status status = submit_watched(request); !status.ok()) return status;
  } else if (started_ || !changes_prompts) {
    if (Status status = engine_->submit(request); !status.ok()) return status;
  } else {
    if (!asked_.empty() && request.id <= asked_.rbegin()->first) return engine_->submit(request);  // says what is wrong
    waiting_.push_back(std::make_unique<OwnedRequest>(request));
  }
  asked_[request.id] = {.new_tokens = request.max_new_tokens, .forced = request.forced.size > 0};
  return {};
}

Status FaultyEngine::cancel(uint64_t id) {
  if (Status started = start(); !started.ok()) return started;
  return engine_->cancel(id);
}

// All requests of the case are there: places can be chosen.
Status FaultyEngine::start() {
  if (std::exchange(started_, true)) return {};
  std::optional<uint64_t> seed = options_.seed;
  if (options_.seed_of_request) seed = request_seed_;
  model_.places = Places(seed, asked_.size());
  for (size_t i = 0; i < waiting_.size(); ++i) {
    OwnedRequest& request = *waiting_[i];
    const uint64_t id = request.request().id;
    Result<std::vector<int32_t>> ids = request.has_ids() ? request.ids() : codec_.encode(request.text());
    if (ids && model_.places.strikes(i)) {
      const std::optional<std::string> where = change_prompt(options_.fault, model_.places, &*ids);
      if (where) {
        planted("request " + std::to_string(id) + ", " + *where);
        if (!request.has_ids()) prompts_[id] = request.text();
        request.set_ids(*std::move(ids));
      }
    }
    if (Status status = engine_->submit(request.request()); !status.ok()) return status;
  }
  waiting_.clear();
  return {};
}

void FaultyEngine::planted(const std::string& where) {
  if (lines_++ >= kMostLines) return;
  host_.log(ASSAY_LOG_INFO, "planted " + std::string(to_string(options_.fault)) + ": " + where);
}

void FaultyEngine::harm_memory() {
  const size_t bytes = kBloat + kBloatPiece * model_.places.amount(16);
  memory_ = take_memory(bytes);
  planted(std::to_string(bytes >> 20) + " MiB");
  std::this_thread::sleep_for(kBloatPause);
}

Status FaultyEngine::step(std::vector<EngineEvent>* events) {
  if (Status started = start(); !started.ok()) return started;
  const size_t harm_at = model_.places.seeded() ? 1 + model_.places.amount(kEarlyForwards) : 2;
  if (++steps_ == harm_at) {
    if (info_of(options_.fault).family == Family::kProcess) planted("step " + std::to_string(steps_));
    if (options_.fault == Fault::kMemoryBloat) harm_memory();
    if (Status harmed = harm_process(options_.fault); !harmed.ok()) return harmed;
  }
  std::vector<EngineEvent> happened;
  if (Status status = engine_->step(&happened); !status.ok()) return status;
  for (EngineEvent& event : happened) {
    const auto prompt = prompts_.find(event.id);
    if (event.result) history_.answered(*event.result);
    if (event.result && prompt != prompts_.end()) event.result->prompt = prompt->second;
  }
  spoil(&happened);
  std::move(happened.begin(), happened.end(), std::back_inserter(*events));
  return {};
}

Status FaultyEngine::reset() {
  waiting_.clear();
  asked_.clear();
  prompts_.clear();
  held_.clear();
  history_.reset();
  model_.rows.clear();
  model_.decode_forwards = 0;
  model_.first_rows = 0;
  started_ = false;
  return engine_->reset();
}

// Results are held until the last one is there, then spoiled together.
void FaultyEngine::spoil(std::vector<EngineEvent>* events) {
  if (!spoils_results(options_.fault)) return;
  const auto ended = std::stable_partition(events->begin(), events->end(),
                                           [](const EngineEvent& event) { return event.kind == ASSAY_EVENT_TOKEN; });
  std::move(ended, events->end(), std::back_inserter(held_));
  events->erase(ended, events->end());
  if (pending() > 0) return;
  // A rerun with forced tokens is a question about the call before it.
  const bool forced = std::any_of(asked_.begin(), asked_.end(), [](const auto& one) { return one.second.forced; });
  const Spoil spoil = {.fault = options_.fault,
                       .places = model_.places,
                       .codec = &codec_,
                       .asked = &asked_,
                       .originals = {},
                       .call = forced ? 0 : next_call()};
  for (const std::string& where : spoil_results(spoil, &held_)) planted(where);
  std::move(held_.begin(), held_.end(), std::back_inserter(*events));
  held_.clear();
}

}  // namespace assay::engines
