#include "plugins/engines/faulty/faulty.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "assay/sdk.hpp"
#include "plugins/engines/faulty/result_faults.h"

namespace assay::engines {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLeakLimit = size_t{4} << 30;

std::string fault_names() {
  std::string names;
  for (const Fault fault : all_faults()) names += (names.empty() ? "" : ", ") + std::string(to_string(fault));
  return names;
}

// Takes `fault` out of the options; the rest is for static_legacy.
Result<Fault> take_fault(std::string_view options, std::string* rest) {
  Json json = Json::parse(options.empty() ? std::string_view("{}") : options, nullptr, false);
  if (!json.is_object()) return invalid("options of engine faulty: not a JSON object");
  const Json named = json.value("fault", Json());
  if (!named.is_string())
    return invalid("options of engine faulty: fault is not set, expected one of " + fault_names());
  const std::optional<Fault> fault = parse_fault(named.get<std::string>());
  if (!fault) {
    return invalid("options of engine faulty: fault is " + named.get<std::string>() + ", expected one of " +
                   fault_names());
  }
  json.erase("fault");
  *rest = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return *fault;
}

void harm_process(Fault fault) {
  switch (fault) {
    case Fault::kCrash:
      std::raise(SIGSEGV);
      return;
    case Fault::kExit:
      ::_exit(0);
    case Fault::kHang:
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    case Fault::kLeakMemory:
      return leak_memory(kLeakLimit);
    default:
      return;
  }
}

}  // namespace

const std::string& faulty_options_schema() {
  static const std::string text = [] {
    Json schema = Json::parse(kStaticOptionsSchema);
    for (const Fault fault : all_faults()) schema["properties"]["fault"]["enum"].push_back(to_string(fault));
    schema["required"] = {"fault"};
    return schema.dump();
  }();
  return text;
}

Result<std::unique_ptr<FaultyEngine>> FaultyEngine::open(const assay_engine_config& config, const Host& host) {
  std::unique_ptr<FaultyEngine> engine(new FaultyEngine);
  std::string rest;
  Result<Fault> fault = take_fault(sdk::text(config.options), &rest);
  if (!fault) return fault.status();
  engine->fault_ = *fault;
  assay_engine_config inner = config;
  inner.options = sdk::view(rest);
  if (config.backend != nullptr) {
    engine->model_ = {.backend = config.backend, .model = config.model, .fault = *fault, .last_prefill = {}};
    engine->backend_ = faulty_backend(*config.backend);
    inner.backend = &engine->backend_;
    inner.model = &engine->model_;
  }
  Result<std::unique_ptr<StaticEngine>> real = StaticEngine::open(inner, host);
  if (!real) return real.status();
  engine->engine_ = *std::move(real);
  return engine;
}

Status FaultyEngine::submit(const assay_request& request) {
  if (Status status = engine_->submit(request); !status.ok()) return status;
  new_tokens_[request.id] = request.max_new_tokens;
  last_id_ = request.id;
  return {};
}

Status FaultyEngine::step(std::vector<EngineEvent>* events) {
  if (++steps_ == 2) harm_process(fault_);
  if (Status status = engine_->step(events); !status.ok()) return status;
  spoil(events);
  return {};
}

Status FaultyEngine::reset() {
  new_tokens_.clear();
  held_.clear();
  last_id_.reset();
  return engine_->reset();
}

void FaultyEngine::spoil(std::vector<EngineEvent>* events) {
  for (EngineEvent& event : *events) {
    if (event.result) spoil_result(fault_, new_tokens_[event.id], engine_->eod(), event.result.get());
  }
  if (fault_ == Fault::kDroppedRequest) {
    std::erase_if(*events, [this](const EngineEvent& event) { return event.result && event.id == last_id_; });
  }
  if (fault_ != Fault::kSwappedRequests) return;
  std::move(events->begin(), events->end(), std::back_inserter(held_));
  events->clear();
  if (engine_->pending() > 0) return;
  swap_first_two(&held_);
  *events = std::exchange(held_, {});
}

void leak_memory(size_t bytes) {
  constexpr size_t kPiece = size_t{64} << 20;
  for (size_t taken = 0; taken < bytes; taken += kPiece) {
    void* piece = std::malloc(kPiece);  // NOLINT: never freed, that is the point
    if (piece == nullptr) return;
    std::memset(piece, 0x5A, kPiece);
    asm volatile("" : : "r"(piece) : "memory");  // the stores are wanted
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace assay::engines
