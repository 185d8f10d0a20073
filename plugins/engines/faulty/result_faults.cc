#include "plugins/engines/faulty/result_faults.h"

#include <limits>
#include <utility>

#include "backends/model/tokenizer/utf8.h"

namespace assay::engines {
namespace {

void keep_eod(int32_t new_tokens, std::optional<int32_t> eod, EngineResult* result) {
  if (!eod || result->tokens.size() >= static_cast<size_t>(new_tokens)) return;
  const bool has_logprobs = result->generated_logprobs.size() == result->tokens.size();
  result->tokens.push_back(*eod);
  result->tpot.push_back(result->tpot.empty() ? 0 : result->tpot.back());
  if (has_logprobs) result->generated_logprobs.push_back(-0.125);
}

}  // namespace

void spoil_result(Fault fault, int32_t new_tokens, std::optional<int32_t> eod, EngineResult* result) {
  std::vector<double>& logprobs = result->generated_logprobs;
  switch (fault) {
    case Fault::kEodKept:
      return keep_eod(new_tokens, eod, result);
    case Fault::kWrongLogprob:
      if (!logprobs.empty()) logprobs[logprobs.size() / 2] -= 0.5;
      return;
    case Fault::kNanLogprob:
      if (!logprobs.empty()) logprobs.back() = std::numeric_limits<double>::quiet_NaN();
      return;
    case Fault::kTruncatedText:
      if (result->text) result->text->resize(utf8::offset_of(*result->text, utf8::count(*result->text) / 2));
      return;
    default:
      return;
  }
}

void swap_first_two(std::vector<EngineEvent>* events) {
  EngineEvent* first = nullptr;
  for (EngineEvent& event : *events) {
    if (event.kind != ASSAY_EVENT_FINISHED) continue;
    if (first == nullptr) {
      first = &event;
      continue;
    }
    std::swap(first->id, event.id);
    std::swap(first->result->id, event.result->id);
    return;
  }
}

}  // namespace assay::engines
