#include "plugins/engines/common/sequence.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace assay::engines {
namespace {

// No margin is below zero: where a backend of ABI 1.0 leaves the array alone, this stays.
constexpr float kUnwritten = -1;

// Lists of `n` entries each; texts are filled in later.
CandidateLists lists_of(std::span<const int32_t> ids, std::span<const double> logprobs, size_t n) {
  CandidateLists lists;
  if (n == 0) return lists;
  lists.ids.assign(ids.begin(), ids.end());
  lists.logprobs.assign(logprobs.begin(), logprobs.end());
  lists.texts.resize(ids.size());
  lists.counts.assign(ids.size() / n, static_cast<uint32_t>(n));
  return lists;
}

}  // namespace

Sequence::Sequence(Request request, const SequenceSetting& setting)
    : request_(std::move(request)), setting_(setting), tokens_(request_.prompt_ids) {
  setting_.sampling.prompt_index = request_.sampling.prompt_index;
  done_ = needed() == 0;
}

// The last token is never fed back: nothing is asked of it. Without new tokens that is the prompt's last one.
size_t Sequence::needed() const { return prompt_size() + static_cast<size_t>(setting_.new_tokens) - 1; }

bool Sequence::wants_prompt() const {
  return request_.want_routing || (!setting_.skip_prompt && (request_.want_logprobs || request_.top_n > 0));
}

size_t Sequence::skippable() const {
  if (wants_prompt() || tokens_.size() < 2) return recorded_;
  return std::max(recorded_, tokens_.size() - 2);
}

size_t Sequence::rows_of(size_t start, size_t stop) const {
  if (stop <= recorded_) return 0;
  const bool every = request_.want_logprobs || request_.top_n > 0;
  if (!every) return stop == tokens_.size() && (!forced() || request_.want_logits) ? 1 : 0;
  size_t first = std::max(start, recorded_);
  if (setting_.skip_prompt) first = std::max(first, prompt_size() - 1);
  return stop > first ? stop - first : 0;
}

size_t Sequence::cut(size_t start, size_t end) const {
  const size_t stop = std::min({end, needed(), tokens_.size()});
  const bool several = request_.want_logits && stop == tokens_.size() && rows_of(start, stop) > 1;
  return several ? stop - 1 : stop;
}

assay_run Sequence::next(size_t start, size_t end) {
  start_ = start;
  const size_t stop = std::min({end, needed(), tokens_.size()});
  assert(start < stop);
  assert(!wants_prompt() || start <= recorded_);
  count_ = stop - start;
  draws_ = stop == tokens_.size();
  output_rows_ = rows_of(start, stop);

  assay_run run{};
  run.ids = tokens_.data() + start;
  run.count = static_cast<uint32_t>(count_);
  run.start = static_cast<uint32_t>(start);
  run.blocks = setting_.blocks.data();
  run.block_count = static_cast<uint32_t>(setting_.blocks.size());
  run.output_rows = static_cast<uint32_t>(output_rows_);
  run.sampling = setting_.sampling;
  if (output_rows_ > 0) want_rows(stop - output_rows_, &run);
  if (draws_ && !forced()) {
    run.output.sampled = &out_.sampled;
    run.output.sampled_logprob = &out_.sampled_logprob;
  }
  if (request_.want_routing && stop > recorded_) {
    out_.routing.assign(count_ * setting_.moe_layers * setting_.moe_topk, 0);
    run.output.routing = out_.routing.data();
  }
  if (request_.want_routing) out_.margins.assign(count_ * setting_.moe_layers, kUnwritten);
  if (draws_ && request_.want_logits) {
    assert(output_rows_ == 1);
    out_.logits.resize(setting_.vocab_size);
    run.output.logits = out_.logits.data();
  }
  return run;
}

// Targets and top-n lists of the output rows, the first of which belongs to position `first`.
void Sequence::want_rows(size_t first, assay_run* run) {
  if (request_.want_logprobs) {
    out_.targets.assign(output_rows_, -1);
    out_.target_logprobs.assign(output_rows_, 0);
    for (size_t r = 0; r < output_rows_; ++r) {
      const size_t position = first + r + 1;
      if (position < tokens_.size()) out_.targets[r] = tokens_[position];
    }
    if (draws_ && forced()) out_.targets.back() = request_.forced[generated()];
    run->targets = out_.targets.data();
    run->output.target_logprobs = out_.target_logprobs.data();
  }
  const size_t top_n = static_cast<size_t>(request_.top_n);
  if (top_n > 0) {
    out_.top_ids.assign(output_rows_ * top_n, -1);
    out_.top_logprobs.assign(output_rows_ * top_n, 0);
    run->top_n = request_.top_n;
    run->output.top_ids = out_.top_ids.data();
    run->output.top_logprobs = out_.top_logprobs.data();
  }
}

std::optional<int32_t> Sequence::absorb(double seconds) {
  (start_ < prompt_size() ? prefill_seconds_ : decode_seconds_) += seconds;
  waited_ += seconds;
  const size_t stop = start_ + count_;
  const size_t fresh = std::max(start_, recorded_);
  counters_.recomputed_tokens += std::min(fresh, stop) - start_;
  if (count_ > 1 || start_ < prompt_size()) ++counters_.chunks;
  prefill_tokens_ += std::max(fresh, std::min(stop, prompt_size())) - fresh;
  if (output_rows_ > 0 && request_.want_logprobs) take_logprobs();
  if (output_rows_ > 0 && request_.top_n > 0) take_top_n();
  if (request_.want_routing && stop > recorded_) take_routing();
  recorded_ = std::max(recorded_, stop);
  if (!draws_) {
    done_ = done_ || stop == needed();
    return std::nullopt;
  }
  const bool was_forced = forced();
  const int32_t token = was_forced ? request_.forced[generated()] : out_.sampled;
  const bool ends = !was_forced && setting_.eod && token == *setting_.eod;
  done_ = done_ || ends;
  if (ends && !setting_.keep_eod) return std::nullopt;
  if (request_.want_logits) take_logit(token);
  tokens_.push_back(token);
  tpot_.push_back(std::exchange(waited_, 0));
  if (!was_forced && stopped()) return std::nullopt;
  done_ = done_ || generated() == static_cast<size_t>(setting_.new_tokens);
  return token;
}

bool Sequence::stopped() {
  if (setting_.stop_words == nullptr) return false;
  const auto ends_with = [this](const std::vector<int32_t>& word) {
    return !word.empty() && word.size() <= generated() && std::equal(word.rbegin(), word.rend(), tokens_.rbegin());
  };
  const auto word = std::find_if(setting_.stop_words->begin(), setting_.stop_words->end(), ends_with);
  if (word == setting_.stop_words->end()) return false;
  done_ = true;
  tokens_.resize(tokens_.size() - word->size());
  tpot_.resize(generated());
  logits_.resize(std::min(logits_.size(), generated()));
  ranks_.resize(logits_.size());
  return true;
}

void Sequence::take_logprobs() {
  logprobs_.insert(logprobs_.end(), out_.target_logprobs.begin(), out_.target_logprobs.end());
  if (draws_ && !forced()) logprobs_.back() = out_.sampled_logprob;
}

void Sequence::take_top_n() {
  top_ids_.insert(top_ids_.end(), out_.top_ids.begin(), out_.top_ids.end());
  top_logprobs_.insert(top_logprobs_.end(), out_.top_logprobs.begin(), out_.top_logprobs.end());
}

// Rank as assay_run_output.target_ranks counts it: larger logits, and equal ones of lower ids.
void Sequence::take_logit(int32_t token) {
  const auto own = out_.logits.begin() + token;
  const float logit = *own;
  const auto before = std::count_if(out_.logits.begin(), own, [logit](float other) { return other >= logit; });
  const auto behind = std::count_if(own, out_.logits.end(), [logit](float other) { return other > logit; });
  logits_.push_back(logit);
  ranks_.push_back(static_cast<int32_t>(before + behind));
}

// The run may have gone over positions that gave theirs before.
void Sequence::take_routing() {
  const size_t known = std::max(start_, recorded_) - start_;
  const size_t row = setting_.moe_layers * setting_.moe_topk;
  routing_.insert(routing_.end(), out_.routing.begin() + static_cast<ptrdiff_t>(known * row), out_.routing.end());
  margins_.insert(margins_.end(), out_.margins.begin() + static_cast<ptrdiff_t>(known * setting_.moe_layers),
                  out_.margins.end());
}

EngineResult Sequence::take_result() {
  const size_t prompt_part = setting_.skip_prompt ? 0 : prompt_size() - 1;
  const size_t whole = prompt_part + generated();  // entries of what was dropped lie beyond it
  EngineResult result;
  result.id = request_.id;
  result.prompt_ids = request_.prompt_ids;
  result.tokens.assign(tokens_.begin() + static_cast<ptrdiff_t>(prompt_size()), tokens_.end());
  if (request_.want_logprobs) {
    const auto middle = logprobs_.begin() + static_cast<ptrdiff_t>(prompt_part);
    result.prompt_logprobs.assign(logprobs_.begin(), middle);
    result.generated_logprobs.assign(middle, logprobs_.begin() + static_cast<ptrdiff_t>(whole));
  }
  const size_t n = static_cast<size_t>(request_.top_n);
  const std::span ids(top_ids_);
  const std::span values(top_logprobs_);
  result.prompt_top_n = lists_of(ids.first(prompt_part * n), values.first(prompt_part * n), n);
  result.generated_top_n =
      lists_of(ids.subspan(prompt_part * n, generated() * n), values.subspan(prompt_part * n, generated() * n), n);
  if (request_.want_routing) {
    const size_t positions = prompt_size() - 1 + generated();
    routing_.resize(positions * setting_.moe_layers * setting_.moe_topk);
    result.routing = std::move(routing_);
    result.routing_tokens = positions;
    result.moe_layers = setting_.moe_layers;
    result.moe_topk = setting_.moe_topk;
    margins_.resize(positions * setting_.moe_layers);
    const bool written = std::find(margins_.begin(), margins_.end(), kUnwritten) == margins_.end();
    if (written) result.routing_margins = std::move(margins_);
  }
  result.generated_logits = std::move(logits_);
  result.generated_ranks = std::move(ranks_);
  result.tpot = std::move(tpot_);
  result.prefill_tokens = prefill_tokens_;
  result.prefill_seconds = prefill_seconds_;
  result.decode_seconds = decode_seconds_;
  return result;
}

}  // namespace assay::engines
