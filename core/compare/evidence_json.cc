#include "core/compare/evidence_json.h"

#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace assay::compare {
namespace {

using Json = nlohmann::ordered_json;

template <class Self, class Of>
concept Is = std::same_as<std::remove_const_t<Self>, Of>;

// The members of each struct, once for both directions.
template <Is<TokenView> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("id", s.id);
  visit("text", s.text);
  visit("logprob", s.logprob);
}

template <Is<SplitCandidate> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("token", s.token);
  visit("golden", s.golden);
  visit("result", s.result);
}

template <Is<Split> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("index", s.index);
  visit("golden", s.golden);
  visit("result", s.result);
  visit("gap", s.gap);
  visit("gap_ulps", s.gap_ulps);
  visit("golden_rank", s.golden_rank);
  visit("near_tie", s.near_tie);
  visit("routing_tie", s.routing_tie);
  visit("top", s.top);
}

template <Is<LogprobStatistics> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("count", s.count);
  visit("max", s.max);
  visit("mean", s.mean);
  visit("p99", s.p99);
  visit("over", s.over);
  visit("tolerance", s.tolerance);
  visit("max_index", s.max_index);
}

template <Is<Reanchoring> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("method", s.method);
  visit("not_done", s.not_done);
  visit("positions", s.positions);
  visit("near_ties", s.near_ties);
  visit("routing_ties", s.routing_ties);
  visit("true_splits", s.true_splits);
  visit("lone", s.lone);
  visit("reproduced", s.reproduced);
  visit("contradiction", s.contradiction);
  visit("text_contradiction", s.text_contradiction);
  visit("tie_limit_ulps", s.tie_limit_ulps);
  visit("tie_limit_nats", s.tie_limit_nats);
  visit("splits", s.splits);
  visit("logprobs", s.logprobs);
}

template <Is<AlignedToken> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("golden", s.golden);
  visit("result", s.result);
  visit("delta", s.delta);
}

template <Is<RoutingDifference> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("token", s.token);
  visit("layer", s.layer);
  visit("golden", s.golden);
  visit("result", s.result);
  visit("margin", s.margin);
}

template <Is<RoutingEvidence> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("compared", s.compared);
  visit("differing", s.differing);
  visit("first_layer", s.first_layer);
  visit("by_layer", s.by_layer);
  visit("first", s.first);
}

template <Is<RequestEvidence> Self, class Visit>
void visit_members(Self& s, Visit&& visit) {
  visit("request", s.request);
  visit("prompt", s.prompt);
  visit("golden_text", s.golden_text);
  visit("result_text", s.result_text);
  visit("text_difference", s.text_difference);
  visit("text_offset", s.text_offset);
  visit("golden_prompt_ids", s.golden_prompt_ids);
  visit("result_prompt_ids", s.result_prompt_ids);
  visit("first_divergent", s.first_divergent);
  visit("first_shown", s.first_shown);
  visit("golden_tokens", s.golden_tokens);
  visit("result_tokens", s.result_tokens);
  visit("tokens", s.tokens);
  visit("split", s.split);
  visit("reanchoring", s.reanchoring);
  visit("logprobs", s.logprobs);
  visit("routing", s.routing);
}

template <class T>
concept Struct = std::is_class_v<T> && requires(T& value) {
  visit_members(value, [](const char*, auto&) {});
};

// Null: nothing to write.
Json put(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

template <class T>
requires std::integral<T> Json put(T value) { return value; }

Json put(const std::string& value) { return value.empty() ? Json() : Json(value); }

Json put(const AlignedToken& pair);
template <Struct T>
Json put(const T& value);
template <class T>
Json put(const std::vector<T>& values);

template <class T>
Json put(const std::optional<T>& value) {
  return value ? put(*value) : Json();
}

template <class T>
Json put(const std::vector<T>& values) {
  if (values.empty()) return {};
  Json array = Json::array();
  for (const T& value : values) array.push_back(put(value));
  return array;
}

template <Struct T>
Json put(const T& value) {
  Json object = Json::object();
  visit_members(value, [&](const char* name, const auto& member) {
    if (Json json = put(member); !json.is_null()) object[name] = std::move(json);
  });
  return object;
}

bool same_token(const TokenView& a, const TokenView& b) { return a.id == b.id && a.text == b.text; }

// Most positions hold the same token twice: `same` stands for a result that equals the golden, and a result without id
// has the golden's id and text.
Json put(const AlignedToken& pair) {
  Json object = put<AlignedToken>(pair);
  if (!pair.golden || !pair.result || !same_token(*pair.golden, *pair.result)) return object;
  if (pair.golden->logprob == pair.result->logprob) {
    object.erase("result");
    object["same"] = true;
  } else {
    object["result"].erase("id");
    object["result"].erase("text");
  }
  return object;
}

void get(const Json& json, double& value) {
  if (!json.is_string()) {
    value = json.get<double>();
    return;
  }
  const std::string name = json.get<std::string>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (name == "NaN") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (name == "Infinity" || name == "-Infinity") {
    value = name[0] == '-' ? -kInfinity : kInfinity;
  } else {
    throw Json::other_error::create(500, "\"" + name + "\" is no number", &json);
  }
}

template <class T>
requires std::integral<T> || std::same_as<T, std::string>
void get(const Json& json, T& value) { value = json.get<T>(); }

void get(const Json& json, AlignedToken& pair);
template <Struct T>
void get(const Json& json, T& value);
template <class T>
void get(const Json& json, std::vector<T>& values);

template <class T>
void get(const Json& json, std::optional<T>& value) {
  get(json, value.emplace());
}

template <class T>
void get(const Json& json, std::vector<T>& values) {
  if (!json.is_array()) throw Json::type_error::create(302, "type must be array", &json);
  values.clear();
  for (const Json& entry : json) get(entry, values.emplace_back());
}

template <Struct T>
void get(const Json& json, T& value) {
  if (!json.is_object()) throw Json::type_error::create(302, "type must be object", &json);
  visit_members(value, [&](const char* name, auto& member) {
    const auto found = json.find(name);
    if (found != json.end() && !found->is_null()) get(*found, member);
  });
}

void get(const Json& json, AlignedToken& pair) {
  get<AlignedToken>(json, pair);
  if (!pair.golden) return;
  if (json.value("same", false)) {
    pair.result = pair.golden;
  } else if (pair.result && !json.at("result").contains("id")) {
    pair.result->id = pair.golden->id;
    pair.result->text = pair.golden->text;
  }
}

}  // namespace

Json evidence_to_json(const std::vector<RequestEvidence>& evidence) {
  Json array = Json::array();
  for (const RequestEvidence& one : evidence) array.push_back(put(one));
  return array;
}

std::vector<RequestEvidence> evidence_from_json(const Json& json) {
  std::vector<RequestEvidence> evidence;
  get(json, evidence);
  return evidence;
}

}  // namespace assay::compare
