#include "core/govern/metric_part.h"

#include <algorithm>
#include <array>

namespace assay::govern {
namespace {

using Record = RequestRecord;

// Prompt and generated logprobs as one list, whichever way the record keeps them.
std::optional<std::vector<double>> joined_logprobs(const Record& record) {
  if (record.logprobs || !record.generated_logprobs) return record.logprobs;
  std::vector<double> joined = record.prompt_logprobs.value_or(std::vector<double>());
  joined.insert(joined.end(), record.generated_logprobs->begin(), record.generated_logprobs->end());
  return joined;
}

bool equal_lists(const std::optional<TopLists>& a, const std::optional<TopLists>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->counts == b->counts &&
         std::equal(a->entries.begin(), a->entries.end(), b->entries.begin(), b->entries.end(),
                    [](const TopEntry& x, const TopEntry& y) { return x.text == y.text && x.logprob == y.logprob; });
}

std::vector<uint16_t> sorted_sets(const Routing& routing) {
  std::vector<uint16_t> experts = routing.experts;
  for (size_t at = 0; routing.topk > 0 && at + routing.topk <= experts.size(); at += routing.topk) {
    const auto begin = experts.begin() + static_cast<ptrdiff_t>(at);
    std::sort(begin, begin + static_cast<ptrdiff_t>(routing.topk));
  }
  return experts;
}

bool equal_routing(const std::optional<Routing>& a, const std::optional<Routing>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->tokens == b->tokens && a->layers == b->layers && a->topk == b->topk && a->positions == b->positions &&
         sorted_sets(*a) == sorted_sets(*b);
}

struct Part {
  std::string_view metric;
  bool performance;
  bool follows_tokens;
  bool (*has)(const Record& record);
  bool (*equal)(const Record& a, const Record& b);
  void (*take)(Record& into, const Record& from);
};

constexpr std::array<Part, 7> kParts = {
    {{"generated_text", false, true, [](const Record& r) { return r.text.has_value(); },
      [](const Record& a, const Record& b) { return a.text == b.text; },
      [](Record& into, const Record& from) { into.text = from.text; }},
     {"generated_tokens", false, true, [](const Record& r) { return r.tokens.has_value(); },
      [](const Record& a, const Record& b) { return a.tokens == b.tokens; },
      [](Record& into, const Record& from) { into.tokens = from.tokens; }},
     {"logprobs", false, true, [](const Record& r) { return r.logprobs || r.generated_logprobs || r.prompt_logprobs; },
      [](const Record& a, const Record& b) { return joined_logprobs(a) == joined_logprobs(b); },
      [](Record& into, const Record& from) {
        into.logprobs = from.logprobs;
        into.prompt_logprobs = from.prompt_logprobs;
        into.generated_logprobs = from.generated_logprobs;
      }},
     {"top_n_logprobs", false, true, [](const Record& r) { return r.top_n || r.prompt_top_n; },
      [](const Record& a, const Record& b) {
        return equal_lists(a.top_n, b.top_n) && equal_lists(a.prompt_top_n, b.prompt_top_n);
      },
      [](Record& into, const Record& from) {
        into.top_n = from.top_n;
        into.prompt_top_n = from.prompt_top_n;
      }},
     {"routing_indices", false, true, [](const Record& r) { return r.routing.has_value(); },
      [](const Record& a, const Record& b) { return equal_routing(a.routing, b.routing); },
      [](Record& into, const Record& from) { into.routing = from.routing; }},
     {"tpot", true, false, [](const Record& r) { return r.tpot.has_value(); },
      [](const Record& a, const Record& b) { return a.tpot == b.tpot; },
      [](Record& into, const Record& from) { into.tpot = from.tpot; }},
     {"latency", true, false, [](const Record& r) { return r.latency.has_value(); },
      [](const Record& a, const Record& b) { return a.latency == b.latency; },
      [](Record& into, const Record& from) { into.latency = from.latency; }}}};

const Part* find_part(std::string_view metric) {
  const std::string name = part_of(metric);
  const auto part = std::find_if(kParts.begin(), kParts.end(), [&](const Part& at) { return at.metric == name; });
  return part == kParts.end() ? nullptr : &*part;
}

const Quantity* find_quantity(const ResultSet& set, std::string_view name) {
  const auto at = std::find_if(set.quantities.begin(), set.quantities.end(),
                               [&](const Quantity& quantity) { return quantity.name == name; });
  return at == set.quantities.end() ? nullptr : &*at;
}

bool part_in(const ResultSet& set, const Part& part) {
  return std::any_of(set.requests.begin(), set.requests.end(), part.has);
}

}  // namespace

std::vector<std::string> metrics_in(const ResultSet& set) {
  std::vector<std::string> names;
  for (const Part& part : kParts) {
    if (part_in(set, part)) names.emplace_back(part.metric);
  }
  for (const Quantity& quantity : set.quantities) names.push_back(quantity.name);
  return names;
}

std::string part_of(std::string_view metric) {
  return std::string(metric == "known_completion" ? "generated_text" : metric);
}

bool is_performance(std::string_view metric) {
  const Part* part = find_part(metric);
  if (part != nullptr) return part->performance;
  return metric != "lifetime_prefill_token_count";  // a counter; the other quantities are rates, times and bytes
}

bool follows_tokens(std::string_view metric) {
  const Part* part = find_part(metric);
  return part != nullptr && part->follows_tokens;
}

bool has_metric(const ResultSet& set, std::string_view metric) {
  const Part* part = find_part(metric);
  return part != nullptr ? part_in(set, *part) : find_quantity(set, metric) != nullptr;
}

bool is_field(std::string_view metric) { return find_part(metric) != nullptr; }

std::string first_lacking(const ResultSet& set, std::string_view metric) {
  const Part* part = find_part(metric);
  if (part == nullptr) return find_quantity(set, metric) == nullptr ? std::string(metric) : "";
  const auto lacking =
      std::find_if(set.requests.begin(), set.requests.end(), [&](const Record& record) { return !part->has(record); });
  return lacking == set.requests.end() ? "" : lacking->id;
}

std::string first_difference(const ResultSet& a, const ResultSet& b, std::string_view metric) {
  const Part* part = find_part(metric);
  if (part == nullptr) {
    const Quantity* x = find_quantity(a, metric);
    const Quantity* y = find_quantity(b, metric);
    const bool equal = x == nullptr || y == nullptr ? x == y : x->values == y->values;
    return equal ? "" : std::string(metric);
  }
  for (const Record& record : a.requests) {
    const Record* other = b.find(record.id);
    if (other == nullptr || !part->equal(record, *other)) return record.id;
  }
  for (const Record& record : b.requests) {
    if (a.find(record.id) == nullptr) return record.id;
  }
  return "";
}

void take_metric(ResultSet& into, const ResultSet& from, std::string_view metric) {
  if (const Part* part = find_part(metric)) {
    for (Record& record : into.requests) {
      if (const Record* other = from.find(record.id)) part->take(record, *other);
    }
    return;
  }
  const auto at = std::find_if(into.quantities.begin(), into.quantities.end(),
                               [&](const Quantity& quantity) { return quantity.name == metric; });
  const Quantity* value = find_quantity(from, metric);
  if (value == nullptr) {
    if (at != into.quantities.end()) into.quantities.erase(at);
  } else if (at != into.quantities.end()) {
    *at = *value;
  } else {
    into.quantities.push_back(*value);
  }
}

}  // namespace assay::govern
