#include "core/train/metric_file.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/golden/file.h"
#include "core/golden/json_reason.h"
#include "core/golden/json_text.h"
#include "core/golden/replace_file.h"
#include "core/golden/text.h"
#include "core/golden/whole_number.h"
#include "core/train/stated_steps.h"

namespace assay::train {
namespace {

using Json = nlohmann::ordered_json;

class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Numbers that JSON lacks are told from real ones by a spelling that no writer uses.
constexpr const char* kNaN = "\x01nan";
constexpr const char* kInfinity = "\x01inf";
constexpr const char* kMinusInfinity = "\x01-inf";

// Bare NaN, Infinity and -Infinity outside of strings become marked strings.
std::string with_marks(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      in_string = c != '"';
      continue;
    }
    const std::string_view rest = text.substr(i);
    const auto mark = [&](std::string_view word, const char* marked) {
      if (!rest.starts_with(word)) return false;
      out += Json(marked).dump();
      i += word.size() - 1;
      return true;
    };
    if (mark("NaN", kNaN) || mark("Infinity", kInfinity) || mark("-Infinity", kMinusInfinity)) continue;
    in_string = c == '"';
    out += c;
  }
  return out;
}

int64_t integer(const Json& json, const std::string& what) {
  try {
    return json::whole<int64_t>(json);
  } catch (const Json::exception&) {
    throw Broken(fmt::format("{} is {}, expected a whole number", what, json.dump()));
  }
}

int64_t step_of(const std::string& key, const std::string& metric) {
  int64_t step = 0;
  const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), step);
  if (error == std::errc() && stop == key.data() + key.size()) return step;
  throw Broken(fmt::format("metric '{}': step '{}' is no whole number", metric, text::printable(key)));
}

constexpr const char* kNotLogged = "nan";  // what Megatron-LM's writer puts at steps without a value

// A string at a step gives the metric a flaw, "nan" apart.
StepValue value_of(int64_t step, const Json& json, const std::string& metric, std::string* flaw) {
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (json.is_number()) return {step, json.get<double>(), false};
  if (!json.is_string()) {
    throw Broken(fmt::format("metric '{}', step {}: {} is no number", metric, step, json.dump()));
  }
  const std::string word = json.get<std::string>();
  if (word == kNaN) return {step, kNoNumber, false};
  if (word == kInfinity) return {step, kInf, false};
  if (word == kMinusInfinity) return {step, -kInf, false};
  if (word != kNotLogged && flaw->empty()) {
    *flaw = fmt::format("step {} is the string {}; expected a number, or \"nan\" where none was logged", step,
                        text::quoted(word, 40));
  }
  return {step, kNoNumber, true};
}

Metric metric_of(const std::string& name, const Json& json);

Metric loose_metric_of(const std::string& name, const Json& json) {
  Json whole = json.is_object() ? json : Json::object();
  for (const char* key : {"start_step", "end_step", "step_interval"}) whole[key] = 0;
  try {
    return metric_of(name, whole);
  } catch (const Broken&) {
    Metric metric;
    metric.name = name;
    metric.unusable = true;
    return metric;
  }
}

Metric metric_of(const std::string& name, const Json& json) {
  Metric metric;
  metric.name = name;
  if (!json.is_object()) throw Broken(fmt::format("metric '{}' is no object of start_step ... values", name));
  const auto member = [&](const char* key) -> const Json& {
    const auto found = json.find(key);
    if (found == json.end()) throw Broken(fmt::format("metric '{}' has no {}", name, key));
    return *found;
  };
  metric.start_step = integer(member("start_step"), fmt::format("metric '{}', start_step", name));
  metric.end_step = integer(member("end_step"), fmt::format("metric '{}', end_step", name));
  metric.step_interval = integer(member("step_interval"), fmt::format("metric '{}', step_interval", name));
  const Json& values = member("values");
  if (!values.is_object()) {
    throw Broken(fmt::format(
        "metric '{}': values is {}, expected an object of step: number; the file is of an older form, record it again",
        name, values.is_array() ? "a list" : "no object"));
  }
  std::unordered_map<int64_t, size_t> places;
  for (const auto& [key, value] : values.items()) {
    const StepValue one = value_of(step_of(key, name), value, name, &metric.flaw);
    const auto [place, is_new] = places.try_emplace(one.step, metric.values.size());
    if (is_new) {
      metric.values.push_back(one);
    } else {
      metric.values[place->second] = one;  // "1" and "01"
      metric.flaw = fmt::format("step {} stands twice", one.step);
    }
  }
  return metric;
}

// Keys that stand twice in the object of a metric, or in its values.
class TwiceSeen {
 public:
  void key(size_t depth, const std::string& key) {
    if (depth == 0 || depth > seen_.size()) return;
    for (size_t deeper = depth; deeper < seen_.size(); ++deeper) seen_[deeper].clear();
    const bool is_new = seen_[depth - 1].insert(key).second;
    if (depth == 1) metric_ = key;
    if (is_new) return;
    constexpr std::array<const char*, 3> kWhat = {"it", "its member ", "step "};
    flaws_.try_emplace(metric_, fmt::format("{}{} stands twice", kWhat[depth - 1], depth == 1 ? "" : key));
  }
  // Empty: none of this metric.
  std::string of(const std::string& metric) const {
    const auto found = flaws_.find(metric);
    return found == flaws_.end() ? "" : found->second;
  }

 private:
  std::array<std::unordered_set<std::string>, 3> seen_;  // by depth: metrics, their members, steps
  std::string metric_;
  std::unordered_map<std::string, std::string> flaws_;
};

// Builds what Json::parse builds. That one compares each name with all before it; a metric may have a value a step.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(TwiceSeen* twice) : twice_(twice) {}
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& /*spelled*/) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*size*/) override { return open(Json::object()); }
  bool start_array(size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    twice_->key(open_.size(), name);
    Open& object = open_.back();
    auto& members = object.json->get_ref<Json::object_t&>();
    const auto [place, is_new] = object.places.try_emplace(name, members.size());
    if (is_new) members.emplace_back(name, Json());
    object.next = place->second;  // the last value of a name counts, in the place of the first
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/, const nlohmann::detail::exception& failure) override {
    throw Broken(json::reason_of(failure.what()));
  }

 private:
  struct Open {
    Json* json;  // stays where it is: what holds it does not grow while it is open
    std::unordered_map<std::string, size_t> places = {};
    size_t next = 0;  // member that the next value is of
  };

  Json* add(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& holder = *open_.back().json;
    if (holder.is_array()) {
      holder.push_back(std::move(value));
      return &holder.back();
    }
    auto& members = holder.get_ref<Json::object_t&>();
    Json& member = (members.begin() + static_cast<ptrdiff_t>(open_.back().next))->second;
    member = std::move(value);
    return &member;
  }
  bool put(Json value) {
    add(std::move(value));
    return true;
  }
  bool open(Json container) {
    open_.push_back({.json = add(std::move(container))});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  TwiceSeen* twice_;
  Json root_;
  std::vector<Open> open_;
};

Json parse(std::string_view text, TwiceSeen* twice) {
  if (json::deeper_than(text, json::kDeepest))
    throw Broken(fmt::format("it is nested more than {} deep", json::kDeepest));
  Builder builder(twice);
  Json::sax_parse(with_marks(text), &builder);
  return builder.take();
}

}  // namespace

Result<MetricSet> read_metrics_text(std::string_view text, const std::string& name, Schema schema) {
  MetricSet set;
  if (text.empty()) return invalid(name + ": the file is empty, expected an object of metrics");
  try {
    TwiceSeen twice;
    Json json = parse(text, &twice);
    if (json.is_string()) json = parse(json.get<std::string>(), &twice);
    if (!json.is_object()) return invalid(name + ": expected an object of metrics at the top level");
    for (const auto& [metric, value] : json.items()) {
      if (metric == "assay") continue;  // provenance
      set.metrics.push_back(schema == Schema::kWhole ? metric_of(metric, value) : loose_metric_of(metric, value));
      Metric& read = set.metrics.back();
      if (std::string seen = twice.of(metric); !seen.empty()) read.flaw = std::move(seen);
      if (schema == Schema::kWhole) check_steps(&read);
    }
  } catch (const std::exception& failure) {
    return invalid(fmt::format("{}: {}", name, text::printable(failure.what())));
  }
  return set;
}

Result<MetricSet> read_metrics(const std::string& path, Schema schema) {
  const Result<std::string> text = read_file(path);
  return text ? read_metrics_text(*text, path, schema) : text.status();
}

std::string metrics_text(const MetricSet& set) {
  std::string out = "{";
  for (const Metric& metric : set.metrics) {
    out += &metric == &set.metrics.front() ? "\n    " : ",\n    ";
    json::append_string(out, metric.name);
    out += fmt::format(
        ": {{\n        \"start_step\": {},\n        \"end_step\": {},\n        \"step_interval\": {},\n        "
        "\"values\": {{",
        metric.start_step, metric.end_step, metric.step_interval);
    for (const StepValue& value : metric.values) {
      out += &value == &metric.values.front() ? "\n" : ",\n";
      const std::string spelled = value.finite()            ? text::python_repr(value.value)
                                  : std::isinf(value.value) ? (value.value > 0 ? "\"inf\"" : "\"-inf\"")
                                                            : "\"nan\"";
      out += fmt::format("            \"{}\": {}", value.step, spelled);
    }
    out += metric.values.empty() ? "}\n    }" : "\n        }\n    }";
  }
  return out + (set.metrics.empty() ? "}\n" : "\n}\n");
}

Status write_metrics(const std::string& path, const MetricSet& set) {
  return replace_file(path, metrics_text(set), Durability::kProcess);
}

double round5(double value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 400> buffer;  // 309 digits before the point
  std::snprintf(buffer.data(), buffer.size(), "%.5f", value);
  return std::strtod(buffer.data(), nullptr);
}

}  // namespace assay::train
