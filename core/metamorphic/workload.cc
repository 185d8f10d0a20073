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

}  // namespace

Workload::Workload(std::vector<Prompt> prompts, const Parameters& parameters, int64_t limit)
    : prompts_(std::move(prompts)),
      has_ids_(std::all_of(prompts_.begin(), prompts_.end(), [](const Prompt& p) { return !p.ids.empty(); })),
      new_tokens_(parameters.new_tokens),
      longest_(static_cast<size_t>(std::max(parameters.prompt_tokens, 1))) {
  if (limit <= 0) return;
  const auto most = static_cast<size_t>(limit);
  longest_ = std::min(longest_, most);
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

Ask Workload::long_ask(size_t index) const {
  Ask made = ask(index);
  const std::vector<int32_t> once = made.ids;
  while (!once.empty() && made.ids.size() < longest_) made.ids.push_back(once[made.ids.size() % once.size()]);
  return made;
}

Result<std::vector<Prompt>> probe_prompts(const std::vector<std::string>& prompts, size_t most,
                                          Laboratory& laboratory) {
  if (prompts.empty()) return invalid("the case has no prompts");
  Way way;
  way.name = "the case's prompts";
  way.prompt_logprobs = false;
  way.calls.emplace_back();
  std::vector<Prompt> found;
  for (size_t i = 0; i < std::min(prompts.size(), most); ++i) {
    Ask ask;
    ask.id = std::to_string(i);
    ask.text = prompts[i];
    ask.prompt_index = i;
    way.calls[0].asks.push_back(std::move(ask));
    found.push_back({.text = prompts[i], .ids = {}});
  }
  const Result<WayResult> result = laboratory.run(way);
  if (!result) return result.status();
  if (!result->failed.empty()) {
    const FailedAsk& failed = result->failed.front();
    return Status(failed.code, fmt::format("request {}: {}", failed.id, failed.message));
  }
  bool all = true;
  for (size_t i = 0; i < found.size(); ++i) {
    const RequestRecord* record = result->find(std::to_string(i));
    if (record == nullptr || !record->prompt_ids) {
      all = false;
    } else {
      found[i].ids = *record->prompt_ids;
    }
  }
  for (Prompt& prompt : found) {
    if (!all) prompt.ids.clear();
  }
  return found;
}

}  // namespace assay::metamorphic
