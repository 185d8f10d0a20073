#include "tools/bench/engine_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "core/run/stopwatch.h"

namespace assay::bench {
namespace {

constexpr uint32_t kBlockSize = 64;
constexpr uint32_t kMostTokens = 16384;  // of one step

// Distinct experts that the requests of a step choose between them, by mixture and generated token.
class ChosenExperts {
 public:
  void take(const assay_result& result) {
    if (result.routing == nullptr || result.moe_layers == 0) return;
    const size_t row = result.moe_layers * result.moe_topk;
    const size_t prompt = result.prompt_ids.size;
    for (size_t t = prompt; t < result.routing_tokens; ++t) {
      for (size_t i = 0; i < row; ++i) {
        chosen_[{t - prompt, i / result.moe_topk}].insert(result.routing[t * row + i]);
      }
    }
  }

  double mean() const {
    size_t sum = 0;
    for (const auto& [place, experts] : chosen_) sum += experts.size();
    return chosen_.empty() ? 0 : static_cast<double>(sum) / static_cast<double>(chosen_.size());
  }

 private:
  std::map<std::pair<size_t, size_t>, std::set<uint16_t>> chosen_;  // of (token, mixture)
};

class Round {
 public:
  // `experts`: told about the results' routing; null: it is not asked for.
  Round(const assay_engine_table* table, void* engine, const EnginePlan& plan, int vocabulary, ChosenExperts* experts)
      : table_(table),
        engine_(engine),
        plan_(plan),
        vocabulary_(static_cast<uint32_t>(std::max(vocabulary, 1))),
        experts_(experts) {}

  Result<double> run() {
    if (Status reset = sdk::call(table_->reset, engine_); !reset.ok()) return reset;
    for (uint32_t id = 0; id < plan_.requests; ++id) {
      if (Status submitted = submit(id); !submitted.ok()) return submitted;
    }
    const uint64_t all = uint64_t{plan_.requests} * new_tokens();
    while (finished_ < plan_.requests) {
      if (Status stepped = step(); !stepped.ok()) return stepped;
    }
    if (tokens_ != all) {
      return internal(
          fmt::format("engine buffered: {} tokens of {} requests, expected {}", tokens_, plan_.requests, all));
    }
    if (steps_ == 0) {
      return invalid(
          fmt::format("{} requests with prompts of {} tokens: the first had ended before the last began; "
                      "give more --steps than {}",
                      plan_.requests, plan_.context, plan_.steps));
    }
    return (end_ - begin_) / steps_;
  }

 private:
  uint32_t new_tokens() const { return plan_.steps + 1; }

  Status submit(uint32_t id) {
    std::vector<int32_t> prompt;
    for (uint32_t i = 0; i < plan_.context; ++i) {
      prompt.push_back(static_cast<int32_t>((i + 977u * id + 1u) * 2654435761u % vocabulary_));
    }
    auto request = sdk::sized<assay_request>();
    request.id = id;
    request.ids = sdk::view(std::span<const int32_t>(prompt));
    request.max_new_tokens = static_cast<int32_t>(new_tokens());
    if (experts_ != nullptr) request.want = ASSAY_WANT_ROUTING;
    request.sampling.temperature = 1;
    request.sampling.top_k = 1;
    return sdk::call(table_->submit, engine_, &request);
  }

  Status step() {
    const assay_event* events = nullptr;
    size_t count = 0;
    size_t pending = 0;
    if (Status stepped = sdk::call(table_->step, engine_, &events, &count, &pending); !stepped.ok()) return stepped;
    const uint32_t finished_before = finished_;
    for (size_t i = 0; i < count; ++i) {
      if (events[i].kind == ASSAY_EVENT_TOKEN) ++tokens_;
      if (events[i].kind == ASSAY_EVENT_FINISHED) {
        ++finished_;
        if (experts_ != nullptr && events[i].result != nullptr) experts_->take(*events[i].result);
      }
      if (events[i].kind == ASSAY_EVENT_FAILED) {
        return {static_cast<StatusCode>(events[i].code), std::string(sdk::text(events[i].message))};
      }
    }
    // Steps of all requests count: from when everybody has a token until somebody has all.
    if (finished_before > 0) return {};
    if (started_.size() < plan_.requests || begin_ == 0) {
      for (size_t i = 0; i < count; ++i) started_.insert(events[i].id);
      if (started_.size() == plan_.requests) begin_ = watch_.seconds();
      return {};
    }
    end_ = watch_.seconds();
    ++steps_;
    return {};
  }

  const assay_engine_table* table_;
  void* engine_;
  const EnginePlan& plan_;
  uint32_t vocabulary_;
  ChosenExperts* experts_;
  const run::Stopwatch watch_;
  uint64_t tokens_ = 0;
  uint32_t finished_ = 0;
  std::set<uint64_t> started_;  // requests that have a token
  double begin_ = 0;            // seconds, of the timed part
  double end_ = 0;
  int steps_ = 0;  // in it
};

}  // namespace

Result<EngineFigures> measure_engine(const run::LoadedModel& model, plugin::PluginRegistry& registry,
                                     const EnginePlan& plan) {
  const Result<const plugin::Plugin*> plugin = registry.find(plugin::Kind::kEngine, "buffered");
  if (!plugin) return plugin.status();
  const assay_engine_table* table = (*plugin)->engine();
  const uint32_t blocks = (plan.context + plan.steps + 1) / kBlockSize + 1;
  const std::string options =
      fmt::format(R"({{"block_count":{},"block_size":{},"max_requests":{},"max_tokens":{},"termination_id":-1}})",
                  uint64_t{blocks} * plan.requests, kBlockSize, plan.requests,
                  std::max({kMostTokens, plan.requests, plan.context}));
  auto settings = sdk::sized<assay_engine_config>();
  settings.backend = model.backend();
  settings.model = model.model();
  settings.model_config_json = sdk::view(model.config_json());
  settings.tokenizer_json = sdk::view(std::string_view("{}"));
  settings.options = sdk::view(options);
  void* handle = nullptr;
  if (Status opened = sdk::call(table->open, &settings, &handle); !opened.ok()) return opened.with("engine buffered");
  const auto close = [table](void* engine) { table->close(engine); };
  const std::unique_ptr<void, decltype(close)> engine(handle, close);
  EngineFigures figures;
  ChosenExperts experts;
  for (int round = 0; round <= plan.rounds; ++round) {  // the first one warms up
    const bool first = round == 0;
    const Result<double> seconds =
        Round(table, engine.get(), plan, model.vocab_size(), first && model.routes() ? &experts : nullptr).run();
    if (!seconds) return seconds.status();
    if (!first) figures.step.seconds.push_back(*seconds);
  }
  figures.experts_chosen = experts.mean();
  return figures;
}

}  // namespace assay::bench
