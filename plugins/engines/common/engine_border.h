// assay_engine_table over a C++ class: handles, views and error passing in one place.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "plugins/engines/common/event_page.h"

namespace assay::engines {

// The host's log and clock. Cheap to copy; a null host drops lines and reads the machine's monotonic clock.
class Host {
 public:
  explicit Host(const assay_host* host = nullptr) : host_(host) {}

  void log(assay_log_level level, std::string_view line) const {
    if (host_ != nullptr) host_->log(host_->context, level, sdk::view(line));
  }
  // The run is to stop soon.
  bool cancelled() const { return host_ != nullptr && host_->cancelled(host_->context) != 0; }
  uint64_t now_ns() const {
    if (host_ != nullptr) return host_->now_ns(host_->context);
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  }

 private:
  const assay_host* host_;
};

// `Engine` has
//   static Result<std::unique_ptr<Engine>> open(const assay_engine_config&, const Host&);
//   Status submit(const assay_request&);   Status cancel(uint64_t id);   Status reset();
//   Status step(std::vector<EngineEvent>* events);   size_t pending() const;
// with the meaning that plugin_abi.h gives these words, and may have
//   Status info(assay_engine_info*);   Status train(const assay_training&, assay_training_result*);
template <class Engine>
class EngineBorder {
 public:
  // `table` of the descriptor. set_host is called by assay_plugin_query, before anything else.
  static const assay_engine_table* table() {
    static const assay_engine_table functions = {
        sizeof(assay_engine_table), 0, open, submit, cancel, step, reset, close, info_entry(), train_entry()};
    return &functions;
  }
  static void set_host(const assay_host* host) { host_pointer() = host; }

 private:
  struct Handle {
    std::unique_ptr<Engine> engine;
    EventPage page;
  };

  // The one thing that assay_plugin_query hands over and open does not.
  static const assay_host*& host_pointer() {
    static const assay_host* host = nullptr;
    return host;
  }
  static Handle& of(void* handle) { return *static_cast<Handle*>(handle); }

  static constexpr auto info_entry() -> decltype(assay_engine_table::info) {
    if constexpr (requires(Engine & engine, assay_engine_info * info) { engine.info(info); }) {
      return [](void* handle, assay_engine_info* info, assay_error* error) {
        return sdk::guarded(error, [&] { return of(handle).engine->info(info); });
      };
    } else {
      return nullptr;
    }
  }
  static constexpr auto train_entry() -> decltype(assay_engine_table::train) {
    if constexpr (requires(Engine & engine, const assay_training& training, assay_training_result* result) {
                    engine.train(training, result);
                  }) {
      return [](void* handle, const assay_training* training, assay_training_result* result, assay_error* error) {
        return sdk::guarded(error, [&] { return of(handle).engine->train(*training, result); });
      };
    } else {
      return nullptr;
    }
  }
  static int32_t open(const assay_engine_config* config, void** out, assay_error* error) {
    return sdk::guarded(error, [&]() -> Status {
      Result<std::unique_ptr<Engine>> engine = Engine::open(*config, Host(host_pointer()));
      if (!engine) return engine.status();
      auto handle = std::make_unique<Handle>();
      handle->engine = *std::move(engine);
      *out = handle.release();
      return {};
    });
  }
  static int32_t submit(void* handle, const assay_request* request, assay_error* error) {
    return sdk::guarded(error, [&] { return of(handle).engine->submit(*request); });
  }
  static int32_t cancel(void* handle, uint64_t id, assay_error* error) {
    return sdk::guarded(error, [&] { return of(handle).engine->cancel(id); });
  }
  static int32_t step(void* handle, const assay_event** events, size_t* count, size_t* pending, assay_error* error) {
    return sdk::guarded(error, [&]() -> Status {
      std::vector<EngineEvent> happened;
      if (Status status = of(handle).engine->step(&happened); !status.ok()) return status;
      of(handle).page.assign(std::move(happened));
      *events = of(handle).page.data();
      *count = of(handle).page.size();
      *pending = of(handle).engine->pending();
      return {};
    });
  }
  static int32_t reset(void* handle, assay_error* error) {
    return sdk::guarded(error, [&] { return of(handle).engine->reset(); });
  }
  static void close(void* handle) { delete static_cast<Handle*>(handle); }
};

// What tells one engine plugin from another. The pointers live as long as the program.
struct EngineDescription {
  const char* name;
  const char* description;
  uint64_t capabilities;
  const char* options_schema;
};

// The answer of an engine plugin's assay_plugin_query: null when this ABI cannot be served.
template <class Engine>
const assay_plugin* engine_plugin(uint32_t abi_major, const assay_host* host, const EngineDescription& engine) {
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  EngineBorder<Engine>::set_host(host);
  static const assay_plugin descriptor = {.magic = ASSAY_PLUGIN_MAGIC,
                                          .size = sizeof(assay_plugin),
                                          .abi_major = ASSAY_ABI_MAJOR,
                                          .abi_minor = ASSAY_ABI_MINOR,
                                          .kind = ASSAY_ENGINE,
                                          .reserved = 0,
                                          .capabilities = engine.capabilities,
                                          .name = engine.name,
                                          .version = "1.0.0",
                                          .description = engine.description,
                                          .options_schema = engine.options_schema,
                                          .table = EngineBorder<Engine>::table()};
  return &descriptor;
}

}  // namespace assay::engines
