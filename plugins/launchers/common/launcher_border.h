// assay_launcher_table over a C++ class: handles, views and error passing in one place.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "plugins/launchers/common/job.h"

namespace assay::launchers {

// `Launcher` has
//   static Result<std::unique_ptr<Launcher>> open(const assay_launcher_config&);
//   Result<uint64_t> start(Job);
//   Result<std::vector<State>> poll(uint64_t id);
//   Status cancel(uint64_t id, std::optional<size_t> task);
// with the meaning that plugin_abi.h gives these words; its destructor cancels what is left.
template <class Launcher>
class LauncherBorder {
 public:
  static const assay_launcher_table* table() {
    static const assay_launcher_table functions = {sizeof(assay_launcher_table), 0, open, start, poll, cancel, close};
    return &functions;
  }

 private:
  struct Handle {
    std::unique_ptr<Launcher> launcher;
    std::vector<State> states;  // what the caller's views point to
  };
  static Handle& of(void* handle) { return *static_cast<Handle*>(handle); }

  static int32_t open(const assay_launcher_config* config, void** out, assay_error* error) {
    return sdk::guarded(error, [&]() -> Status {
      Result<std::unique_ptr<Launcher>> launcher = Launcher::open(*config);
      if (!launcher) return launcher.status();
      *out = new Handle{*std::move(launcher), {}};
      return {};
    });
  }
  static int32_t start(void* handle, const assay_job* job, uint64_t* id, assay_error* error) {
    return sdk::guarded(error, [&]() -> Status {
      Result<Job> copy = copy_job(*job);
      if (!copy) return copy.status();
      const Result<uint64_t> started = of(handle).launcher->start(*std::move(copy));
      if (!started) return started.status();
      *id = *started;
      return {};
    });
  }
  static int32_t poll(void* handle, uint64_t id, assay_task_state* states, size_t count, assay_error* error) {
    return sdk::guarded(error, [&]() -> Status {
      Result<std::vector<State>> found = of(handle).launcher->poll(id);
      if (!found) return found.status();
      if (found->size() != count) {
        return invalid("job " + std::to_string(id) + " has " + std::to_string(found->size()) + " tasks, asked for " +
                       std::to_string(count));
      }
      of(handle).states = *std::move(found);
      for (size_t i = 0; i < count; ++i) {
        const State& state = of(handle).states[i];
        states[i].phase = state.phase;
        states[i].exit_code = state.exit_code;
        states[i].signal = state.signal;
        states[i].restarts = state.restarts;
        states[i].again = state.again ? 1 : 0;
        states[i].where = sdk::view(state.where);
        states[i].reason = sdk::view(state.reason);
      }
      return {};
    });
  }
  static int32_t cancel(void* handle, uint64_t id, int64_t task, assay_error* error) {
    return sdk::guarded(error, [&] {
      return of(handle).launcher->cancel(id, task < 0 ? std::nullopt : std::optional(static_cast<size_t>(task)));
    });
  }
  static void close(void* handle) { delete static_cast<Handle*>(handle); }
};

// The answer of a launcher plugin's assay_plugin_query: null when this ABI cannot be served. The pointers live as long
// as the program.
template <class Launcher>
const assay_plugin* launcher_plugin(uint32_t abi_major, const char* name, const char* description, const char* schema) {
  if (abi_major != ASSAY_ABI_MAJOR) return nullptr;
  static const assay_plugin descriptor = {.magic = ASSAY_PLUGIN_MAGIC,
                                          .size = sizeof(assay_plugin),
                                          .abi_major = ASSAY_ABI_MAJOR,
                                          .abi_minor = ASSAY_ABI_MINOR,
                                          .kind = ASSAY_LAUNCHER,
                                          .reserved = 0,
                                          .capabilities = 0,
                                          .name = name,
                                          .version = "1.0.0",
                                          .description = description,
                                          .options_schema = schema,
                                          .table = LauncherBorder<Launcher>::table()};
  return &descriptor;
}

}  // namespace assay::launchers
