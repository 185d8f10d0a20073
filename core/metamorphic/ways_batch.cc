// Relations about who else is there.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/metamorphic/experiment.h"

namespace assay::metamorphic {
namespace {

constexpr size_t kFew = 8;      // requests of a relation that has no sizes of its own
constexpr size_t kTargets = 3;  // requests whose neighbours change
constexpr size_t kLonger = 16;  // tokens that one of the new neighbours has beyond all that were there

// `count` requests, of which the first is long.
std::vector<Ask> some_asks(const Workload& workload, size_t count) {
  std::vector<Ask> asks = workload.asks(count);
  if (!asks.empty()) asks[0] = workload.long_ask(0);
  return asks;
}

// Requests that keep others company, under names of their own.
std::vector<Ask> company(std::vector<Ask> asks, const std::string& prefix) {
  for (Ask& ask : asks) {
    ask.id = prefix + ask.id;
    ask.judged = false;
  }
  return asks;
}

Way one_call(std::string name, std::vector<Ask> asks) {
  Way way;
  way.name = std::move(name);
  way.calls.push_back({.asks = std::move(asks)});
  return way;
}

Check batch_of(uint64_t least, uint64_t most, std::vector<std::string> ids) {
  return counters_within({.counter = Counter::kBatch, .over = Over::kLargest, .least = least, .most = most},
                         std::move(ids));
}

bool is_among(const std::vector<Ask>& some, const Ask& other) {
  return std::any_of(some.begin(), some.end(),
                     [&](const Ask& one) { return one.ids == other.ids && one.text == other.text; });
}

Check neighbours_differ(const std::vector<Ask>& some, const std::vector<Ask>& others) {
  const auto count =
      std::count_if(others.begin(), others.end(), [&](const Ask& other) { return !is_among(some, other); });
  return [count](const WayResult&, const WayResult&) -> Seen {
    const std::string seen = fmt::format("{} neighbour{} that the reference has not", count, count == 1 ? "" : "s");
    return {count > 0, count > 0 ? seen : seen + ", expected at least 1; give the case longer prompts"};
  };
}

}  // namespace

Experiment solo_vs_batch(const Setting& setting) {
  Experiment made;
  Trial trial;
  made.missing = missing_options(setting, {"max_requests"});
  const int32_t most = *std::max_element(setting.parameters.batches.begin(), setting.parameters.batches.end());
  const std::vector<Ask> asks = some_asks(setting.workload, static_cast<size_t>(std::max(most, 2)));
  trial.reference.name = "one request at a time";
  for (const Ask& ask : asks) trial.reference.calls.push_back({.asks = {ask}});
  trial.untouched = batch_of(1, 1, ids_of(asks));
  for (const int32_t batch : setting.parameters.batches) {
    // Batches of one: all of them wait for each other.
    const size_t count = batch == 1 ? asks.size() : static_cast<size_t>(batch);
    std::vector<Ask> some(asks.begin(), asks.begin() + static_cast<ptrdiff_t>(count));
    const std::vector<std::string> ids = ids_of(some);
    Way way = one_call(fmt::format("batches of {}", batch), std::move(some));
    way.engine_options["max_requests"] = std::to_string(batch);
    const auto number = static_cast<uint64_t>(batch);
    trial.changed.push_back({.way = std::move(way), .mechanism = batch_of(number, number, ids)});
  }
  made.trials.push_back(std::move(trial));
  return made;
}

Experiment shuffled_order(const Setting& setting) {
  Experiment made;
  Trial trial;
  const std::vector<Ask> asks = some_asks(setting.workload, kFew);
  trial.reference = one_call("requests in their order", asks);
  std::vector<Ask> reversed(asks.rbegin(), asks.rend());
  std::vector<Ask> shuffled;  // 3, 0, 5, 2, 7, 4, 1, 6 of 8
  for (size_t i = 0; i < asks.size(); ++i) shuffled.push_back(asks[(i * 5 + 3) % asks.size()]);
  // One begins while others are under way: prompts and decoded tokens in one forward.
  if (setting.laboratory.has_engine_option("", "requests_per_step")) {
    Way way = one_call("reversed, one arriving a step", reversed);
    way.engine_options["requests_per_step"] = "1";
    Check mechanism = both(another_came_first(trial.reference, way), ended_at_unlike_steps(ids_of(asks)));
    trial.changed.push_back({.way = std::move(way), .mechanism = std::move(mechanism)});
  }
  for (auto& [name, order] : {std::pair("reversed", reversed), std::pair("shuffled", shuffled)}) {
    Way way = one_call(name, order);
    Check mechanism = another_came_first(trial.reference, way);
    trial.changed.push_back({.way = std::move(way), .mechanism = std::move(mechanism)});
  }
  made.trials.push_back(trial);
  add_drawn(setting, trial, &made);
  return made;
}

Experiment changed_neighbours(const Setting& setting) {
  Experiment made;
  Trial trial;
  const std::vector<Ask> targets = some_asks(setting.workload, kTargets);
  std::vector<Ask> pool = setting.workload.asks(kTargets + 2 * kFew);
  const std::vector<Ask> some = company({pool.begin() + kTargets, pool.begin() + kTargets + kFew}, "a-");
  std::vector<Ask> others = company({pool.begin() + kTargets + kFew, pool.end()}, "b-");
  if (setting.workload.has_ids()) {
    size_t longest = 0;
    for (const Ask& target : targets) longest = std::max(longest, target.ids.size());
    others.back().ids = setting.workload.ask_of(kTargets + kFew, longest + kLonger).ids;
  }
  // Those first that are not among `some`: short prompts have few variations.
  std::vector<Ask> first_others = others;
  std::stable_partition(first_others.begin(), first_others.end(), [&](const Ask& ask) { return !is_among(some, ask); });
  first_others.resize(3);
  const auto joined = [](std::vector<Ask> front, const std::vector<Ask>& back) {
    front.insert(front.end(), back.begin(), back.end());
    return front;
  };
  const auto held = [&](size_t neighbours) {
    const uint64_t all = targets.size() + neighbours;
    return counters_within({.counter = Counter::kBatch, .over = Over::kEach, .least = 2, .most = all}, ids_of(targets));
  };
  const auto held_others = [&](const std::vector<Ask>& neighbours) {
    return both(held(neighbours.size()), neighbours_differ(some, neighbours));
  };
  trial.reference = one_call("requests among some neighbours", joined(targets, some));
  trial.untouched = held(some.size());
  trial.changed.push_back(
      {.way = one_call("other neighbours", joined(targets, others)), .mechanism = held_others(others)});
  trial.changed.push_back({.way = one_call("other neighbours, who came before", joined(others, targets)),
                           .mechanism = held_others(others)});
  trial.changed.push_back(
      {.way = one_call("fewer neighbours", joined(first_others, targets)), .mechanism = held_others(first_others)});
  made.trials.push_back(std::move(trial));
  return made;
}

Experiment repeated_call(const Setting& setting) {
  Experiment made;
  Trial trial;
  const std::vector<Ask> asks = some_asks(setting.workload, kFew);
  const std::vector<Ask> pool = setting.workload.asks(2 * kFew);
  const std::vector<Ask> others = company({pool.begin() + kFew, pool.end()}, "earlier-");
  trial.reference = one_call("the first call of an engine", asks);
  // `calls`: so many were made before.
  const auto after = [&](const char* name, const std::vector<Ask>& earlier, size_t calls, bool reset) {
    Way way;
    way.name = name;
    for (size_t call = 0; call < calls; ++call) {
      const auto part = [&](size_t n) { return earlier.begin() + static_cast<ptrdiff_t>(earlier.size() * n / calls); };
      way.calls.push_back({.asks = {part(call), part(call + 1)}});
    }
    way.calls.push_back({.asks = asks, .reset_before = reset});
    trial.changed.push_back({.way = std::move(way), .mechanism = others_were_answered(ids_of(earlier))});
  };
  after("after two calls with other requests", others, 2, false);
  after("after other requests and a reset", others, 1, true);
  after("the same requests again", company(asks, "earlier-"), 1, false);
  made.trials.push_back(std::move(trial));
  return made;
}

}  // namespace assay::metamorphic
