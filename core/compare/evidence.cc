#include "core/compare/evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/compare/reanchoring.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

using Texts = std::map<int32_t, std::string>;  // token id -> text

void add_texts(const std::vector<TopEntry>& entries, Texts& texts) {
  for (const TopEntry& entry : entries) {
    if (entry.id >= 0) texts.emplace(entry.id, entry.text);
  }
}

Texts texts_of(const EvidenceInput& input) {
  Texts texts;
  for (const RequestRecord* record : {input.actual, input.golden}) {
    if (record->top_n) add_texts(record->top_n->entries, texts);
    if (record->prompt_top_n) add_texts(record->prompt_top_n->entries, texts);
  }
  if (input.again == nullptr) return texts;
  for (const RerunPosition& position : input.again->positions) add_texts(position.top, texts);
  return texts;
}

// `text` from byte `begin` on, at most kMaxEvidenceText bytes, whole code points.
std::string window(std::string_view text, size_t begin) {
  text.remove_prefix(std::min(begin, text.size()));
  size_t length = 0;
  while (length < text.size()) {
    const size_t next = length + text::decode(text, length).length;
    if (next > kMaxEvidenceText) break;
    length = next;
  }
  return std::string(text.substr(0, length));
}

// Byte offset of the first code point that lies at or after `offset`.
size_t whole(std::string_view text, size_t offset) {
  size_t at = 0;
  while (at < offset && at < text.size()) at += text::decode(text, at).length;
  return at;
}

void show_texts(const EvidenceInput& input, RequestEvidence& evidence) {
  const std::optional<std::string>& prompt = input.golden->prompt ? input.golden->prompt : input.actual->prompt;
  if (prompt) {
    const size_t cut = prompt->size() > kMaxEvidenceText ? prompt->size() - kMaxEvidenceText : 0;
    evidence.prompt = prompt->substr(whole(*prompt, cut));
  }
  const std::string golden = input.golden->text.value_or("");
  const std::string result = input.actual->text.value_or("");
  const size_t equal = text::common_prefix(golden, result);
  const bool both = input.golden->text && input.actual->text;
  const bool differ = both && (equal < golden.size() || equal < result.size());
  if (differ) evidence.text_difference = static_cast<int64_t>(text::count(golden.substr(0, equal)));
  size_t begin = 0;
  if (std::max(golden.size(), result.size()) > kMaxEvidenceText && equal > kMaxEvidenceText / 2) {
    begin = whole(golden, equal - kMaxEvidenceText / 2);  // both texts are the same up to there
  }
  evidence.text_offset = static_cast<int64_t>(text::count(golden.substr(0, begin)));
  evidence.golden_text = window(golden, begin);
  evidence.result_text = window(result, begin);
}

void show_prompt_ids(const EvidenceInput& input, RequestEvidence& evidence) {
  const auto& golden = input.golden->prompt_ids;
  const auto& result = input.actual->prompt_ids;
  if (!golden || !result || *golden == *result) return;
  const auto first = [](const std::vector<int32_t>& ids) {
    return std::vector<int32_t>(ids.begin(),
                                ids.begin() + static_cast<ptrdiff_t>(std::min(ids.size(), kMaxAlignedTokens)));
  };
  evidence.golden_prompt_ids = first(*golden);
  evidence.result_prompt_ids = first(*result);
}

// One side's generated tokens with what is known of them.
class Side {
 public:
  Side(const std::vector<int32_t>* tokens, const RequestRecord* record, const Texts& texts)
      : tokens_(tokens), texts_(texts) {
    if (record == nullptr || tokens == nullptr) return;
    logprobs_ = joined_logprobs(*record);
    if (logprobs_.size() >= tokens->size()) {
      logprobs_.erase(logprobs_.begin(), logprobs_.end() - static_cast<ptrdiff_t>(tokens->size()));
    } else {
      logprobs_.clear();
    }
  }

  size_t size() const { return tokens_ == nullptr ? 0 : tokens_->size(); }
  std::optional<double> logprob(size_t i) const {
    return i < logprobs_.size() ? std::optional(logprobs_[i]) : std::nullopt;
  }
  std::optional<TokenView> at(size_t i) const {
    if (i >= size()) return std::nullopt;
    TokenView view;
    view.id = (*tokens_)[i];
    if (const auto text = texts_.find(view.id); text != texts_.end()) view.text = text->second;
    view.logprob = logprob(i);
    return view;
  }

 private:
  const std::vector<int32_t>* tokens_;
  const Texts& texts_;
  std::vector<double> logprobs_;  // (tokens) or empty
};

// What the judged run alone says about the first divergent token.
Split split_of(const EvidenceInput& input, const Side& golden, const Side& result, size_t index) {
  Split split;
  split.index = static_cast<int64_t>(index);
  split.golden = golden.at(index).value_or(TokenView());
  split.result = result.at(index).value_or(TokenView());
  const std::optional<TopLists>& lists = input.actual->top_n;
  if (!lists || index >= lists->counts.size()) return split;
  size_t begin = 0;
  for (size_t i = 0; i < index; ++i) begin += lists->counts[i];
  for (size_t i = 0; i < lists->counts[index] && split.top.size() < kMaxSplitCandidates; ++i) {
    const TopEntry& entry = lists->entries[begin + i];
    SplitCandidate candidate{{entry.id, entry.text, entry.logprob}, false, false};
    candidate.golden = entry.id >= 0 && entry.id == split.golden.id;
    candidate.result = entry.id >= 0 && entry.id == split.result.id;
    if (candidate.golden) {
      split.golden.logprob = entry.logprob;  // now both are of one run
      split.golden_rank = static_cast<int64_t>(i);
      if (split.result.logprob) split.gap = std::max(0.0, *split.result.logprob - entry.logprob);
    }
    split.top.push_back(std::move(candidate));
  }
  return split;
}

void align_tokens(const EvidenceInput& input, const Texts& texts, RequestEvidence& evidence) {
  const std::vector<int32_t>* fed = nullptr;
  if (input.golden->tokens) {
    fed = &*input.golden->tokens;
  } else if (input.again != nullptr && !input.again->golden_tokens.empty()) {
    fed = &input.again->golden_tokens;
  }
  const Side golden(fed, input.golden, texts);
  const Side result(input.actual->tokens ? &*input.actual->tokens : nullptr, input.actual, texts);
  const bool anew = input.again != nullptr && input.again->record;
  const Side again(anew ? &*input.again->record->tokens : nullptr, anew ? &*input.again->record : nullptr, texts);
  if (fed != nullptr) evidence.golden_tokens = static_cast<int64_t>(fed->size());
  if (input.actual->tokens) evidence.result_tokens = static_cast<int64_t>(input.actual->tokens->size());
  evidence.first_divergent = fed != nullptr ? first_divergent(*fed, *input.actual) : -1;
  const size_t total = std::max(golden.size(), result.size());
  const size_t parted = evidence.first_divergent < 0 ? total : static_cast<size_t>(evidence.first_divergent);
  const size_t centre = evidence.first_divergent < 0 ? 0 : parted;
  const size_t before = kMaxAlignedTokens / 2;
  size_t begin = centre > before ? centre - before : 0;
  if (total > kMaxAlignedTokens) begin = std::min(begin, total - kMaxAlignedTokens);
  if (total <= kMaxAlignedTokens) begin = 0;
  evidence.first_shown = static_cast<int64_t>(begin);
  for (size_t i = begin; i < std::min(total, begin + kMaxAlignedTokens); ++i) {
    AlignedToken aligned{golden.at(i), result.at(i), std::nullopt};
    const std::optional<double> other = i < parted ? result.logprob(i) : again.logprob(i);
    if (golden.logprob(i) && other) aligned.delta = std::fabs(*golden.logprob(i) - *other);
    evidence.tokens.push_back(std::move(aligned));
  }
  if (evidence.first_divergent >= 0) evidence.split = split_of(input, golden, result, parted);
}

}  // namespace

RequestEvidence evidence_of(const EvidenceInput& input) {
  RequestEvidence evidence;
  evidence.request = input.golden->id;
  show_texts(input, evidence);
  show_prompt_ids(input, evidence);
  align_tokens(input, texts_of(input), evidence);
  evidence.reanchoring = input.reanchoring;
  if (input.reanchoring) {
    for (const Split& split : input.reanchoring->splits) {
      if (evidence.split && split.index == evidence.first_divergent) {
        evidence.split = split;
        break;
      }
    }
  }
  // Both sides share the prompt and the tokens before the first one that differs.
  const size_t generated = input.actual->tokens ? input.actual->tokens->size() : 0;
  const size_t prompt =
      joined_logprobs(*input.actual).size() - std::min(generated, joined_logprobs(*input.actual).size());
  const size_t tokens = evidence.first_divergent < 0 ? generated : static_cast<size_t>(evidence.first_divergent);
  evidence.logprobs = logprob_statistics(*input.golden, *input.actual, prompt + tokens, input.tolerance);
  const bool explained = input.reanchoring && input.reanchoring->explains();
  const bool anew = explained && input.again != nullptr && input.again->record && input.again->record->routing;
  const RequestRecord& routed = anew ? *input.again->record : *input.actual;
  const size_t prompt_tokens = input.actual->prompt_ids ? input.actual->prompt_ids->size() : prompt + 1;
  const bool whole_sequence = anew || evidence.first_divergent < 0;
  evidence.routing = routing_evidence(*input.golden, routed, whole_sequence ? SIZE_MAX / 2 : prompt_tokens + tokens);
  return evidence;
}

}  // namespace assay::compare
