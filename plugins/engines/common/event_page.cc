#include "plugins/engines/common/event_page.h"

#include <utility>

#include "assay/sdk.hpp"

namespace assay::engines {
namespace {

assay_str view_of(const std::optional<std::string>& text) { return text ? sdk::view(*text) : assay_str{}; }

assay_ids view_of(const std::vector<int32_t>& ids) { return sdk::view(std::span<const int32_t>(ids)); }
assay_doubles view_of(const std::vector<double>& values) { return sdk::view(std::span<const double>(values)); }

}  // namespace

void EventPage::assign(std::vector<EngineEvent> events) {
  views_.clear();
  results_.clear();
  candidates_.clear();
  events_ = std::move(events);
  views_.reserve(events_.size());
  for (const EngineEvent& event : events_) {
    auto view = sdk::sized<assay_event>();
    view.kind = static_cast<uint32_t>(event.kind);
    view.id = event.id;
    view.token = event.token;
    view.code = static_cast<int32_t>(event.failure.code());
    view.message = sdk::view(event.failure.message());
    if (event.result) view.result = view_of(*event.result);
    views_.push_back(view);
  }
}

assay_candidates EventPage::view_of(const CandidateLists& lists) {
  std::vector<assay_candidate>& entries = candidates_.emplace_back();
  entries.reserve(lists.ids.size());
  for (size_t i = 0; i < lists.ids.size(); ++i) {
    entries.push_back({lists.ids[i], 0, lists.logprobs[i], engines::view_of(lists.texts[i])});
  }
  return {entries.data(), lists.counts.data(), lists.counts.size()};
}

const assay_result* EventPage::view_of(const EngineResult& result) {
  auto view = sdk::sized<assay_result>();
  view.id = result.id;
  view.prompt = engines::view_of(result.prompt);
  view.text = engines::view_of(result.text);
  view.prompt_ids = engines::view_of(result.prompt_ids);
  view.tokens = engines::view_of(result.tokens);
  view.prompt_logprobs = engines::view_of(result.prompt_logprobs);
  view.generated_logprobs = engines::view_of(result.generated_logprobs);
  view.prompt_top_n = view_of(result.prompt_top_n);
  view.generated_top_n = view_of(result.generated_top_n);
  view.tpot = engines::view_of(result.tpot);
  view.latency = result.latency;
  view.routing = result.routing.empty() ? nullptr : result.routing.data();
  view.routing_tokens = result.routing_tokens;
  view.moe_layers = result.moe_layers;
  view.moe_topk = result.moe_topk;
  view.prefill_tokens = result.prefill_tokens;
  view.prefill_seconds = result.prefill_seconds;
  view.decode_seconds = result.decode_seconds;
  view.extra = sdk::view(result.extra);
  view.generated_ranks = engines::view_of(result.generated_ranks);
  view.generated_logits = engines::view_of(result.generated_logits);
  view.routing_margins = result.routing_margins.empty() ? nullptr : result.routing_margins.data();
  results_.push_back(view);
  return &results_.back();
}

}  // namespace assay::engines
