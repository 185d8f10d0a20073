#include "core/metamorphic/mechanism.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace assay::metamorphic {
namespace {

struct CounterWords {
  uint64_t Counters::*value;
  const char* one;
  const char* many;
  const char* seen;  // with a number of them
};
constexpr std::array<CounterWords, 4> kWords = {  // in the order of Counter
    {{&Counters::batch, "request", "requests", "{} in one forward"},
     {&Counters::chunks, "chunk", "chunks", "a prompt in {}"},
     {&Counters::cached_tokens, "token", "tokens", "{} from the cache"},
     {&Counters::preemptions, "preemption", "preemptions", "{}"}}};

const CounterWords& words_of(Counter counter) { return kWords.at(static_cast<size_t>(counter)); }

std::string seen_of(Counter counter, uint64_t n) {
  const CounterWords& words = words_of(counter);
  return fmt::format(fmt::runtime(words.seen), fmt::format("{} {}", n, n == 1 ? words.one : words.many));
}

std::string expectation(const Bound& bound) {
  if (bound.least == bound.most) return fmt::format("exactly {}", bound.least);
  if (bound.most == UINT64_MAX) return fmt::format("at least {}", bound.least);
  return bound.least == 0 ? fmt::format("at most {}", bound.most) : fmt::format("{} to {}", bound.least, bound.most);
}

size_t generated(const WayResult& way, const std::string& id) {
  const RequestRecord* record = way.find(id);
  return record != nullptr && record->tokens ? record->tokens->size() : 0;
}

}  // namespace

Check counters_within(const Bound& bound, std::vector<std::string> ids) {
  return [bound, ids = std::move(ids)](const WayResult&, const WayResult& way) -> Seen {
    if (ids.empty()) return {false, "no request to look at"};
    uint64_t smallest = UINT64_MAX;
    uint64_t largest = 0;
    uint64_t sum = 0;
    for (const std::string& id : ids) {
      const RequestRecord* record = way.find(id);
      const Counters counters = record == nullptr ? Counters() : counters_of(*record);
      if (!counters.known) {
        return {false, fmt::format("engine {} tells no engine_counters of request {}: whether it happened is not known",
                                   way.engine, id)};
      }
      const uint64_t value = counters.*words_of(bound.counter).value;
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      sum += value;
    }
    const auto inside = [&](uint64_t value) { return value >= bound.least && value <= bound.most; };
    uint64_t shown = bound.over == Over::kSum ? sum : largest;
    if (bound.over == Over::kEach && !inside(smallest)) shown = smallest;
    if (inside(shown)) return {true, seen_of(bound.counter, shown)};
    return {false, fmt::format("{}, expected {}", seen_of(bound.counter, shown), expectation(bound))};
  };
}

Check both(Check first, Check second) {
  return [first = std::move(first), second = std::move(second)](const WayResult& reference, const WayResult& changed) {
    Seen one = first(reference, changed);
    if (!one.fired) return one;
    Seen other = second(reference, changed);
    if (other.fired) other.what = one.what + ", " + other.what;
    return other;
  };
}

Check others_were_answered(std::vector<std::string> others) {
  return [others = std::move(others)](const WayResult&, const WayResult& way) -> Seen {
    const auto count =
        std::count_if(others.begin(), others.end(), [&](const std::string& id) { return generated(way, id) > 0; });
    const std::string seen = fmt::format("{} other request{} answered before", count, count == 1 ? "" : "s");
    return {count > 0, count > 0 ? seen : seen + ", expected at least 1 that gave tokens"};
  };
}

Check ended_at_unlike_steps(const std::vector<std::string>& ids) {
  const Check together =
      counters_within({.counter = Counter::kBatch, .over = Over::kLargest, .least = 2, .most = UINT64_MAX}, ids);
  const Check unlike = [ids](const WayResult&, const WayResult& way) -> Seen {
    std::set<uint64_t> steps;
    for (const std::string& id : ids) {
      if (const RequestRecord* record = way.find(id)) steps.insert(counters_of(*record).steps);
    }
    const std::string seen = fmt::format("requests ended at {} different steps", steps.size());
    return {steps.size() > 1, steps.size() > 1 ? seen : seen + ", expected at least 2"};
  };
  return both(together, unlike);
}

Check another_came_first(const Way& reference, const Way& changed) {
  const auto first = [](const Way& way) {
    return way.calls.empty() || way.calls[0].asks.empty() ? std::string("none") : way.calls[0].asks[0].id;
  };
  return [before = first(reference), now = first(changed)](const WayResult&, const WayResult&) -> Seen {
    if (before == now) return {false, fmt::format("request {} came first in both orders, expected another", now)};
    return {true, fmt::format("request {} came first instead of {}", now, before)};
  };
}

Check two_engines() {
  return [](const WayResult& reference, const WayResult& changed) -> Seen {
    if (reference.engine == changed.engine) {
      return {false, fmt::format("both ways ran on engine {}, expected two engines", changed.engine)};
    }
    return {true, fmt::format("engines {} and {}", reference.engine, changed.engine)};
  };
}

Check device_says(int32_t threads) {
  return [threads](const WayResult& reference, const WayResult& changed) -> Seen {
    const std::string number = std::to_string(threads);
    const std::string& device = changed.device;
    bool named = false;  // the number stands there, and is no part of a longer one
    const auto digit = [&](size_t at) { return at < device.size() && device[at] >= '0' && device[at] <= '9'; };
    for (size_t at = device.find(number); at != std::string::npos; at = device.find(number, at + 1)) {
      named = named || !((at > 0 && digit(at - 1)) || digit(at + number.size()));
    }
    if (named && device != reference.device) return {true, fmt::format("device \"{}\"", device)};
    return {false, fmt::format("the device calls itself \"{}\" and in the reference \"{}\", expected {} threads in it",
                               device, reference.device, threads)};
  };
}

Check other_files() {
  return [](const WayResult& reference, const WayResult& changed) -> Seen {
    if (changed.checkpoint.empty() || changed.checkpoint == reference.checkpoint) {
      return {false, fmt::format("weights came from '{}' in both ways, expected new files", changed.checkpoint)};
    }
    return {true, "weights came from new files"};
  };
}

Check both_halves_gave_tokens(std::vector<std::string> ids, std::string suffix) {
  return [ids = std::move(ids), suffix = std::move(suffix)](const WayResult&, const WayResult& way) -> Seen {
    size_t first = 0;
    size_t second = 0;
    for (const std::string& id : ids) {
      const size_t continued = generated(way, id + suffix);
      if (generated(way, id) == 0 || continued == 0) continue;
      first += generated(way, id);
      second += continued;
    }
    if (first > 0) return {true, fmt::format("{} + {} tokens in two halves", first, second)};
    return {false, "no request gave tokens in both halves, expected at least one"};
  };
}

Check decoded_tokens_became_prompt(std::vector<std::string> ids) {
  return [ids = std::move(ids)](const WayResult& reference, const WayResult& changed) -> Seen {
    size_t decoded = 0;
    for (const std::string& id : ids) {
      const size_t tokens = generated(reference, id);
      const RequestRecord* before = reference.find(id);
      const RequestRecord* after = changed.find(id);
      if (tokens < 2 || after == nullptr) continue;
      if (!before->prompt_ids || !after->prompt_ids) continue;
      if (after->prompt_ids->size() == before->prompt_ids->size() + tokens) decoded += tokens;
    }
    if (decoded > 0) return {true, fmt::format("{} decoded tokens were prompt tokens then", decoded)};
    return {false, "0 decoded tokens stood in a prompt, expected at least 2 of one request"};
  };
}

}  // namespace assay::metamorphic
