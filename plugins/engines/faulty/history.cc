#include "plugins/engines/faulty/history.h"

#include <algorithm>

namespace assay::engines {

Watched History::asked(uint64_t prompt_index, std::span<const int32_t> prompt, bool idle) {
  if (idle) {
    before_ = std::move(this_call_);
    ++calls_;
  }
  this_call_.assign(prompt.begin(), prompt.end());
  Watched request;
  request.prompt_index = prompt_index;
  request.ids = this_call_;
  request.prompt_size = prompt.size();
  request.after_reset = after_reset_;
  request.call = calls_;
  request.before = before_;
  for (const std::vector<int32_t>& answer : answers_) {
    const bool goes_on = answer.size() <= prompt.size() && std::equal(answer.begin(), answer.end(), prompt.begin());
    if (goes_on) request.answered = std::max(request.answered, answer.size());
  }
  return request;
}

void History::answered(const EngineResult& result) {
  if (result.tokens.empty()) return;
  if (answers_.size() >= kMostAnswers) answers_.erase(answers_.begin());
  answers_.push_back(result.prompt_ids);
  answers_.back().insert(answers_.back().end(), result.tokens.begin(), result.tokens.end());
}

void History::reset() { after_reset_ = true; }

}  // namespace assay::engines
