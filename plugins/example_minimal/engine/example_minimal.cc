// Engine example_minimal: answers every request with its own prompt.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"

namespace {

using assay::Status;
using namespace assay::sdk;

struct Echo {
  uint64_t id = 0;
  std::string text;  // a submitted request is only borrowed, so it is copied
};

struct Engine {
  std::vector<Echo> waiting;
  std::vector<Echo> answered;  // owns what the views below point to, until the next call of step
  std::vector<assay_result> results;
  std::vector<assay_event> events;
};

Engine& of(void* handle) { return *static_cast<Engine*>(handle); }

int32_t open(const assay_engine_config* config, void** engine, assay_error* error) {
  return guarded(error, [&]() -> Status {
    if (config->options.size != 0 && text(config->options) != "{}") {
      return assay::invalid("options of engine example_minimal: it has none; leave them out");
    }
    *engine = new Engine;
    return {};
  });
}

int32_t submit(void* handle, const assay_request* request, assay_error* error) {
  return guarded(error, [&]() -> Status {
    if (request->ids.data != nullptr) return assay::unsupported("example_minimal takes text, not token ids");
    if (request->forced.size != 0) return assay::unsupported("example_minimal cannot take forced tokens");
    of(handle).waiting.push_back({request->id, std::string(text(request->text))});
    return {};
  });
}

int32_t cancel(void* handle, uint64_t id, assay_error* error) {
  return guarded(error, [&]() -> Status {
    const auto is_it = [id](const Echo& echo) { return echo.id == id; };
    return std::erase_if(of(handle).waiting, is_it) > 0 ? Status() : assay::not_found("no such request is waiting");
  });
}

// All waiting requests end in one step. A real engine does a bounded piece of work here.
int32_t step(void* handle, const assay_event** events, size_t* event_count, size_t* pending, assay_error* error) {
  return guarded(error, [&]() -> Status {
    Engine& engine = of(handle);
    engine.answered = std::exchange(engine.waiting, {});
    engine.results.assign(engine.answered.size(), sized<assay_result>());
    engine.events.assign(engine.answered.size(), sized<assay_event>());
    for (size_t i = 0; i < engine.answered.size(); ++i) {
      engine.results[i].id = engine.answered[i].id;
      engine.results[i].prompt = view(engine.answered[i].text);
      engine.results[i].text = view(engine.answered[i].text);
      engine.events[i].kind = ASSAY_EVENT_FINISHED;
      engine.events[i].id = engine.answered[i].id;
      engine.events[i].result = &engine.results[i];
    }
    *events = engine.events.data();
    *event_count = engine.events.size();
    *pending = engine.waiting.size();
    return {};
  });
}

int32_t reset(void* handle, assay_error*) {
  of(handle) = Engine();
  return ASSAY_OK;
}

void close(void* handle) { delete static_cast<Engine*>(handle); }

const assay_engine_table kTable = {
    sizeof(assay_engine_table), 0, open, submit, cancel, step, reset, close, nullptr, nullptr};

const assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                              sizeof(assay_plugin),
                              ASSAY_ABI_MAJOR,
                              ASSAY_ABI_MINOR,
                              ASSAY_ENGINE,
                              0,
                              ASSAY_CAP_TEXT | ASSAY_CAP_BATCH,  // what it can do
                              "example_minimal",                 // the file is engine_example_minimal.so
                              "1.0.0",
                              "answers every request with its own prompt",
                              R"({"type": "object", "additionalProperties": false})",  // its options: none
                              &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
