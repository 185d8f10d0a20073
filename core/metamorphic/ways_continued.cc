// Relations in which tokens of one way become the prompt of another.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/metamorphic/experiment.h"

namespace assay::metamorphic {
namespace {

constexpr size_t kRequests = 6;
constexpr const char* kRest = "+";  // suffix of the request that goes on

template <class T>
std::vector<T> cut(const std::vector<T>& values, size_t from, size_t to) {
  from = std::min(from, values.size());
  to = std::clamp(to, from, values.size());
  return {values.begin() + static_cast<ptrdiff_t>(from), values.begin() + static_cast<ptrdiff_t>(to)};
}

TopLists cut(const TopLists& lists, size_t from, size_t to) {
  const auto entries_before = [&](size_t position) {
    size_t count = 0;
    for (size_t i = 0; i < std::min(position, lists.counts.size()); ++i) count += lists.counts[i];
    return count;
  };
  return {cut(lists.entries, entries_before(from), entries_before(to)), cut(lists.counts, from, to)};
}

Routing cut(const Routing& routing, size_t from, size_t to) {
  Routing made;
  from = std::min(from, routing.tokens);
  made.tokens = std::clamp(to, from, routing.tokens) - from;
  made.layers = routing.layers;
  made.topk = routing.topk;
  const size_t sets = routing.layers;
  made.experts = cut(routing.experts, from * sets * routing.topk, (from + made.tokens) * sets * routing.topk);
  made.margins = cut(routing.margins, from * sets, (from + made.tokens) * sets);
  return made;
}

template <class T>
void append(std::vector<T>* values, const std::vector<T>& more) {
  values->insert(values->end(), more.begin(), more.end());
}

// What neither side can be asked for: texts of parts, times, and what follows from these.
RequestRecord plain(RequestRecord record) {
  record.text.reset();
  record.prompt.reset();
  record.prompt_top_n.reset();
  record.tpot.reset();
  record.latency.reset();
  record.logits.reset();
  record.ranks.reset();
  if (record.routing && !record.routing->positions.empty()) record.routing.reset();  // of some tokens alone
  return record;
}

size_t generated(const RequestRecord& record) { return record.tokens ? record.tokens->size() : 0; }
size_t prompt_size(const RequestRecord& record) { return record.prompt_ids ? record.prompt_ids->size() : 0; }

// The first half with its continuation behind it.
RequestRecord joined(const RequestRecord& first, const RequestRecord& rest) {
  RequestRecord whole = plain(first);
  if (whole.tokens && rest.tokens) append(&*whole.tokens, *rest.tokens);
  if (whole.logprobs && rest.logprobs) {
    const size_t prompt = rest.logprobs->size() - std::min(rest.logprobs->size(), generated(rest));
    append(&*whole.logprobs, cut(*rest.logprobs, prompt, rest.logprobs->size()));
  }
  if (whole.top_n && rest.top_n) {
    append(&whole.top_n->entries, rest.top_n->entries);
    append(&whole.top_n->counts, rest.top_n->counts);
  }
  if (whole.routing && rest.routing) {
    // All but the half's last token is known, which the rest went through.
    const Routing more = cut(*rest.routing, whole.routing->tokens, rest.routing->tokens);
    append(&whole.routing->experts, more.experts);
    append(&whole.routing->margins, more.margins);
    whole.routing->tokens += more.tokens;
  }
  return whole;
}

Sides join_halves(const std::vector<Ask>& asks, const WayResult& reference, const WayResult& changed) {
  Sides sides;
  for (const Ask& ask : asks) {
    const RequestRecord* whole = reference.find(ask.id);
    const RequestRecord* first = changed.find(ask.id);
    const RequestRecord* rest = changed.find(ask.id + kRest);
    if (whole != nullptr) sides.reference.push_back(plain(*whole));
    if (first != nullptr) sides.changed.push_back(rest == nullptr ? plain(*first) : joined(*first, *rest));
  }
  return sides;
}

// The generated part of a record, taken out of the prompt part of one that was given it as prompt.
RequestRecord decoded_part(const RequestRecord& given, const RequestRecord& reference) {
  RequestRecord record = plain(given);
  const size_t prompt = prompt_size(reference);
  const size_t tokens = generated(reference);
  const std::vector<int32_t> ids = given.prompt_ids.value_or(std::vector<int32_t>());
  record.prompt_ids = cut(ids, 0, prompt);
  record.tokens = cut(ids, prompt, ids.size());
  if (given.logprobs) record.logprobs = cut(*given.logprobs, 0, prompt + tokens - 1);
  record.top_n.reset();
  if (given.prompt_top_n && reference.top_n) {
    record.top_n = cut(*given.prompt_top_n, prompt - 1, prompt + tokens - 1);
  }
  if (given.routing && reference.routing) record.routing = cut(*given.routing, 0, reference.routing->tokens);
  return record;
}

Sides decoded_against_prompt(const WayResult& reference, const WayResult& changed) {
  Sides sides;
  for (const RequestRecord& given : changed.records) {
    const RequestRecord* decoded = reference.find(given.id);
    if (decoded == nullptr) continue;
    sides.reference.push_back(plain(*decoded));
    sides.changed.push_back(decoded_part(given, *decoded));
  }
  return sides;
}

Experiment continued(const Setting& setting, const char* relation) {
  Experiment made;
  made.texts = false;
  if (!setting.workload.has_ids()) {
    made.missing = fmt::format("engine {} tells no prompt ids or takes none, behind which {} could put generated ones",
                               setting.engine, relation);
    return made;
  }
  std::vector<Ask> asks = setting.workload.asks(kRequests);
  asks[0] = setting.workload.long_ask(0);
  asks[1] = over_a_block(setting.workload, 1);
  Trial trial;
  trial.reference.calls.push_back({.asks = std::move(asks)});
  made.trials.push_back(std::move(trial));
  return made;
}

std::vector<int32_t> with_tokens(const Ask& ask, const RequestRecord& record, size_t count) {
  std::vector<int32_t> ids = ask.ids;
  append(&ids, cut(*record.tokens, 0, count));
  return ids;
}

void without_stop_words(Way* way) {
  way->engine_options["stop_words"] = "[]";  // one may reach over the border of two halves
}

}  // namespace

Experiment stop_continue(const Setting& setting) {
  Experiment made = continued(setting, "stop_continue");
  if (!made.missing.empty()) return made;
  Trial trial = std::move(made.trials[0]);
  made.trials.clear();
  const std::vector<Ask> asks = trial.reference.calls[0].asks;
  trial.reference.name = "all tokens in one go";
  without_stop_words(&trial.reference);
  Changed halves;
  halves.way.name = "half of them, then the rest";
  without_stop_words(&halves.way);
  halves.follow = [asks](const WayResult& reference) {
    std::vector<Call> calls(2);
    for (const Ask& ask : asks) {
      const int32_t half = std::max(ask.new_tokens / 2, 1);
      calls[0].asks.push_back(ask);
      calls[0].asks.back().new_tokens = half;
      const RequestRecord* whole = reference.find(ask.id);
      if (whole == nullptr || generated(*whole) <= static_cast<size_t>(half)) continue;  // it ends in the first half
      Ask rest = ask;
      rest.id += kRest;
      rest.ids = with_tokens(ask, *whole, static_cast<size_t>(half));
      rest.new_tokens = ask.new_tokens - half;
      rest.judged = false;
      calls[1].asks.push_back(std::move(rest));
    }
    if (calls[1].asks.empty()) calls.pop_back();
    return calls;
  };
  halves.mechanism = both_halves_gave_tokens(ids_of(asks), kRest);
  halves.assemble = [asks](const WayResult& reference, const WayResult& changed) {
    return join_halves(asks, reference, changed);
  };
  trial.changed.push_back(std::move(halves));
  made.trials.push_back(trial);
  add_drawn(setting, trial, &made);
  return made;
}

Experiment prefill_vs_decode(const Setting& setting) {
  constexpr uint64_t kNeeded = ASSAY_CAP_LOGPROBS | ASSAY_CAP_PROMPT_LOGPROBS;
  Experiment made = continued(setting, "prefill_vs_decode");
  made.tokens = false;
  if ((setting.laboratory.capabilities("").value_or(0) & kNeeded) != kNeeded) {
    made.missing =
        fmt::format("engine {} cannot supply logprobs of prompts, which prefill_vs_decode compares", setting.engine);
  }
  if (!made.missing.empty()) return made;
  Trial trial = std::move(made.trials[0]);
  made.trials.clear();
  const std::vector<Ask> asks = trial.reference.calls[0].asks;
  trial.reference.name = "tokens as they were generated";
  without_stop_words(&trial.reference);
  Changed given;
  given.way.name = "the same tokens as part of the prompt";
  without_stop_words(&given.way);
  given.follow = [asks](const WayResult& reference) {
    std::vector<Call> calls(1);
    for (const Ask& ask : asks) {
      const RequestRecord* whole = reference.find(ask.id);
      if (whole == nullptr || generated(*whole) == 0) continue;
      calls[0].asks.push_back(ask);
      calls[0].asks.back().ids = with_tokens(ask, *whole, generated(*whole));
      calls[0].asks.back().new_tokens = 1;
    }
    return calls;
  };
  given.mechanism = decoded_tokens_became_prompt(ids_of(asks));
  given.assemble = decoded_against_prompt;
  trial.changed.push_back(std::move(given));
  made.trials.push_back(std::move(trial));
  return made;
}

}  // namespace assay::metamorphic
