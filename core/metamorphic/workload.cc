#include "core/metamorphic/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::metamorphic {
namespace {

// Variations are cut to these eighths of their prompt in turn, so that neighbours differ in length.
constexpr size_t kEighths = 8;
constexpr size_t kEighthsStep = 5;  // has no divisor in common with kEighths
constexpr size_t kTurn = 7;         // ids that a variation is turned round by, times its round

// Does the engine answer the first prompt by its ids as by its text?
Result<bool> takes_ids(Way way, const WayResult& by_text, Laboratory& laboratory) {
  way.name = "a prompt by its ids";
  way.calls[0].asks.resize(1);
  Ask& ask = way.calls[0].asks[0];
  const RequestRecord& text = *by_text.find(ask.id);
  ask.ids = *text.prompt_ids;
  ask.text.clear();
  const Result<WayResult> result = laboratory.run(way);
  if (!result) return result.status();
  const RequestRecord* record = result->find(ask.id);
  const auto silent = [](const RequestRecord& r) { return !r.tokens || r.tokens->empty(); };
  return record != nullptr && record->prompt_ids == text.prompt_ids && silent(*record) == silent(text);
}

}  // namespace

Workload::Workload(std::vector<Prompt> prompts, const Parameters& parameters, int64_t limit)
    : prompts_(std::move(prompts)),
      has_ids_(std::all_of(prompts_.begin(), prompts_.end(), [](const Prompt& p) { return !p.ids.empty(); })),
      new_tokens_(parameters.new_tokens),
      longest_(static_cast<size_t>(std::max(parameters.prompt_tokens, 1))) {
  if (limit <= 0) return;
  const auto most = static_cast<size_t>(limit);
  longest_ = std::min(longest_, most);
  limit_ = most;
  for (Prompt& prompt : prompts_) {
    if (prompt.ids.size() > most) prompt.ids.resize(most);
  }
}

std::vector<int32_t> Workload::variation(size_t index) const {
  std::vector<int32_t> ids = prompts_[index % prompts_.size()].ids;
  const size_t round = index / prompts_.size();
  if (round == 0 || ids.size() < 2) return ids;
  const size_t turn = round * kTurn % ids.size();
  std::rotate(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(turn), ids.end());
  const size_t eighths = index * kEighthsStep % kEighths + 1;
  ids.resize(std::max<size_t>(1, std::min(ids.size(), longest_) * eighths / kEighths));
  return ids;
}

Ask Workload::make(size_t index, Prompt prompt) const {
  return {.id = std::to_string(index),
          .text = std::move(prompt.text),
          .ids = std::move(prompt.ids),
          .prompt_index = index,
          .new_tokens = new_tokens_,
          .judged = true};
}

Ask Workload::ask(size_t index) const {
  if (has_ids_) return make(index, {.text = "", .ids = variation(index)});
  return make(index, {.text = prompts_[index % prompts_.size()].text, .ids = {}});
}

std::vector<Ask> Workload::asks(size_t count) const {
  std::vector<Ask> asks;
  for (size_t i = 0; i < count; ++i) asks.push_back(ask(i));
  return asks;
}

Ask Workload::long_ask(size_t index) const { return ask_of(index, std::max(longest_, ask(index).ids.size())); }

Ask Workload::ask_of(size_t index, size_t tokens) const {
  Ask made = ask(index);
  if (!has_ids_) return made;
  if (limit_ > 0) tokens = std::min(tokens, limit_);
  const std::vector<int32_t> once = made.ids;
  made.ids.resize(tokens);
  for (size_t i = once.size(); i < tokens; ++i) made.ids[i] = once[i % once.size()];
  return made;
}

Result<Probe> probe_prompts(const std::vector<std::string>& prompts, size_t most, Laboratory& laboratory) {
  if (prompts.empty()) return invalid("the case has no prompts");
  Way way;
  way.name = "the case's prompts";
  way.prompt_logprobs = false;
  way.calls.emplace_back();
  Probe probe;
  for (size_t i = 0; i < std::min(prompts.size(), most); ++i) {
    Ask ask;
    ask.id = std::to_string(i);
    ask.text = prompts[i];
    ask.prompt_index = i;
    way.calls[0].asks.push_back(std::move(ask));
    probe.prompts.push_back({.text = prompts[i], .ids = {}});
  }
  Result<WayResult> result = laboratory.run(way);
  if (!result) return result.status();
  probe.failed = std::move(result->failed);
  if (!probe.failed.empty()) return probe;
  for (size_t i = 0; i < probe.prompts.size(); ++i) {
    const RequestRecord* record = result->find(std::to_string(i));
    if (record != nullptr && record->prompt_ids) probe.prompts[i].ids = *record->prompt_ids;
  }
  const bool all =
      std::all_of(probe.prompts.begin(), probe.prompts.end(), [](const Prompt& p) { return !p.ids.empty(); });
  const Result<bool> takes = all ? takes_ids(way, *result, laboratory) : Result<bool>(false);
  if (!takes) return takes.status();
  for (Prompt& prompt : probe.prompts) {
    if (!*takes) prompt.ids.clear();
  }
  return probe;
}

}  // namespace assay::metamorphic
