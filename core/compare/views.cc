#include "core/compare/views.h"

#include <utility>

#include "assay/sdk.hpp"

namespace assay::compare {
namespace {

// Backslash, n becomes a newline; a backslash before anything else stays.
std::string unescaped(assay_str value) {
  const std::string_view text = sdk::text(value);
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const bool newline = text[at] == '\\' && at + 1 < text.size() && text[at + 1] == 'n';
    out += newline ? '\n' : text[at];
    at += newline ? 1 : 0;
  }
  return out;
}

}  // namespace

RecordView::RecordView(const RequestRecord& record) : view_(sdk::sized<assay_record>()) {
  const auto has = [&](uint32_t bit) { view_.has |= bit; };
  if (record.prompt) {
    view_.prompt = sdk::view(*record.prompt);
    has(ASSAY_HAS_PROMPT);
  }
  if (record.text) {
    view_.text = sdk::view(*record.text);
    has(ASSAY_HAS_TEXT);
  }
  if (record.prompt_ids) {
    view_.prompt_ids = {record.prompt_ids->data(), record.prompt_ids->size()};
    has(ASSAY_HAS_PROMPT_IDS);
  }
  if (record.tokens) {
    view_.tokens = {record.tokens->data(), record.tokens->size()};
    has(ASSAY_HAS_TOKENS);
  }
  if (record.logprobs) {
    view_.logprobs = {record.logprobs->data(), record.logprobs->size()};
    has(ASSAY_HAS_LOGPROBS);
  } else if (record.generated_logprobs) {
    logprobs_ = record.prompt_logprobs.value_or(std::vector<double>());
    logprobs_.insert(logprobs_.end(), record.generated_logprobs->begin(), record.generated_logprobs->end());
    view_.logprobs = {logprobs_.data(), logprobs_.size()};
    has(ASSAY_HAS_LOGPROBS);
  }
  if (record.top_n) {
    for (const TopEntry& entry : record.top_n->entries) {
      candidates_.push_back({-1, 0, entry.logprob, sdk::view(entry.text)});
    }
    view_.top_n = {candidates_.data(), record.top_n->counts.data(), record.top_n->counts.size()};
    has(ASSAY_HAS_TOP_N);
  }
  if (record.routing) {
    const Routing& routing = *record.routing;
    view_.routing = routing.experts.data();
    view_.routing_tokens = routing.tokens;
    view_.moe_layers = routing.layers;
    view_.moe_topk = routing.topk;
    view_.routing_positions = {routing.positions.data(), routing.positions.size()};
    has(ASSAY_HAS_ROUTING);
    if (!routing.margins.empty() && routing.margins.size() == routing.tokens * routing.layers) {
      view_.routing_margins = routing.margins.data();
      has(ASSAY_HAS_ROUTING_MARGINS);
    }
  }
  if (record.tpot) {
    view_.tpot = {record.tpot->data(), record.tpot->size()};
    has(ASSAY_HAS_TPOT);
  }
  if (record.latency) {
    view_.latency = *record.latency;
    has(ASSAY_HAS_LATENCY);
  }
}

void RecordView::replace_text(std::string text) {
  text_ = std::move(text);
  view_.text = sdk::view(text_);
  view_.has |= ASSAY_HAS_TEXT;
}

void RecordView::unescape_newlines() {
  prompt_ = unescaped(view_.prompt);
  text_ = unescaped(view_.text);
  if ((view_.has & ASSAY_HAS_PROMPT) != 0) view_.prompt = sdk::view(prompt_);
  if ((view_.has & ASSAY_HAS_TEXT) != 0) view_.text = sdk::view(text_);
}

Pairs::Pairs(const ResultSet& golden, const ResultSet& actual) {
  views_.reserve(2 * golden.requests.size());
  for (const RequestRecord& reference : golden.requests) {
    const RequestRecord* candidate = actual.find(reference.id);
    if (candidate == nullptr) continue;
    views_.push_back(std::make_unique<RecordView>(reference));
    views_.push_back(std::make_unique<RecordView>(*candidate));
    pairs_.push_back(
        {sdk::view(reference.id), &views_[views_.size() - 2]->record(), &views_[views_.size() - 1]->record()});
  }
}

std::vector<assay_quantity> quantity_views(const ResultSet& set) {
  std::vector<assay_quantity> views;
  for (const Quantity& quantity : set.quantities) {
    views.push_back({sdk::view(quantity.name), {quantity.values.data(), quantity.values.size()}});
  }
  return views;
}

}  // namespace assay::compare
