// Drives an OpenaiEngine the way a worker does, and keeps what it logs. For tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "plugins/engines/openai/engine.h"

namespace assay::engines::openai {

struct Ending {
  std::map<uint64_t, EngineResult> finished;
  std::map<uint64_t, Status> failed;
  std::vector<uint64_t> order;
  size_t tokens = 0;  // TOKEN events
  Status broke;       // what step said
};

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  Status open(const nlohmann::json& options) {
    auto config = sdk::sized<assay_engine_config>();
    const std::string json = options.dump();
    config.options = sdk::view(json);
    Result<std::unique_ptr<OpenaiEngine>> opened = OpenaiEngine::open(config, Host(&host_));
    if (!opened) return opened.status();
    engine_ = *std::move(opened);
    return {};
  }

  nlohmann::json facts() {
    auto about = sdk::sized<assay_engine_info>();
    EXPECT_TRUE(engine_->info(&about).ok());
    return nlohmann::json::parse(sdk::text(about.facts));
  }
  bool can(uint64_t capability) {
    auto about = sdk::sized<assay_engine_info>();
    EXPECT_TRUE(engine_->info(&about).ok());
    return (about.capabilities & capability) == capability;
  }

  Status submit(uint64_t id, const std::string& prompt, int32_t tokens = 8, int32_t top_n = 0,
                const std::vector<int32_t>& ids = {}, int32_t top_k = 1) {
    auto request = sdk::sized<assay_request>();
    request.id = id;
    request.want = ASSAY_WANT_LOGPROBS;
    request.text = sdk::view(prompt);
    if (!ids.empty()) request.ids = sdk::view(std::span<const int32_t>(ids));
    request.max_new_tokens = tokens;
    request.top_n = top_n;
    request.sampling = {.temperature = 1, .top_k = top_k, .reserved = 0, .top_p = 0, .seed = 5, .prompt_index = id};
    return engine_->submit(request);
  }

  Ending drain() {
    Ending ending;
    while (engine_->pending() > 0 && ending.broke.ok()) {
      std::vector<EngineEvent> events;
      ending.broke = engine_->step(&events);
      for (EngineEvent& event : events) {
        if (event.kind == ASSAY_EVENT_TOKEN) ++ending.tokens;
        if (event.kind == ASSAY_EVENT_TOKEN) continue;
        ending.order.push_back(event.id);
        if (event.kind == ASSAY_EVENT_FAILED) ending.failed.emplace(event.id, event.failure);
        if (event.kind == ASSAY_EVENT_FINISHED) ending.finished.emplace(event.id, std::move(*event.result));
      }
    }
    return ending;
  }

  OpenaiEngine& engine() { return *engine_; }
  void close() { engine_.reset(); }
  // Everything that was logged, joined.
  const std::string& log() const { return log_; }

 private:
  std::string log_;
  assay_host host_ = {sizeof(assay_host),
                      ASSAY_ABI_MAJOR,
                      ASSAY_ABI_MINOR,
                      0,
                      this,
                      [](void* self, int32_t, assay_str line) {
                        static_cast<Driver*>(self)->log_ += std::string(sdk::text(line)) + "\n";
                      },
                      [](void*) -> int32_t { return 0; },
                      [](void*) -> uint64_t {
                        const auto now = std::chrono::steady_clock::now().time_since_epoch();
                        return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
                      }};
  std::unique_ptr<OpenaiEngine> engine_;
};

}  // namespace assay::engines::openai
