#include "core/compat/megatron_inference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/compat/py_array.h"
#include "core/compat/py_json.h"

namespace assay::compat {
namespace {

using Kind = Value::Kind;

constexpr std::array<std::u32string_view, 5> kNoRequests = {
    U"throughput", U"lifetime_prefill_token_count", U"async_sched_step_count", U"async_sched_compaction_step_count",
    U"mem-max-allocated-bytes"};

bool is_request(std::u32string_view key) {
  return std::find(kNoRequests.begin(), kNoRequests.end(), key) == kNoRequests.end();
}

[[noreturn]] void assertion(std::string what) { throw PyError{"AssertionError", std::move(what)}; }

// value[key] of a value that should be a dict.
const Value& subscript(const Value& value, std::u32string_view key) {
  if (value.kind != Kind::kDict) throw PyError{"TypeError", std::string(type_name(value)) + " has no members"};
  const Value* found = value.find(key);
  if (found == nullptr) throw PyError{"KeyError", "'" + to_utf8(key) + "'"};
  return *found;
}

size_t length(const Value& value) {
  switch (value.kind) {
    case Kind::kText:
      return value.text.size();
    case Kind::kList:
      return value.items.size();
    case Kind::kDict:
      return value.members.size();
    default:
      throw PyError{"TypeError", std::string(type_name(value)) + " has no length"};
  }
}

// value[1:] of a list of numbers; of a text the characters, which no median takes.
std::vector<Value> without_first(const Value& value) {
  if (value.kind == Kind::kText && value.text.size() < 2) return {};
  if (value.kind != Kind::kList) throw PyError{"TypeError", std::string("no list but ") + type_name(value)};
  if (value.items.empty()) return {};
  return {value.items.begin() + 1, value.items.end()};
}

bool is_close(const Value& left, const Value& right) {
  const double a = real_number(left), b = real_number(right);
  if (a == b) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  const double difference = std::fabs(b - a);
  return difference <= std::fabs(1e-9 * b) || difference <= std::fabs(1e-9 * a) || difference <= 0.001;
}

class Judge {
 public:
  Judge(const Value& golden, const Value& actual, const Metrics& metrics)
      : golden_(golden), actual_(actual), metrics_(metrics) {}

  // The number of values that were compared; throws when the comparison fails.
  std::string judge() {
    check_ids();
    if (golden_.members.empty()) assertion("no test was performed: the golden is empty");
    if (golden_.find(U"throughput") != nullptr && wanted("throughput")) throughput();
    if (golden_.find(U"mem-max-allocated-bytes") != nullptr && wanted("mem-max-allocated-bytes")) memory();
    prefill_count();
    for (const auto& [id, result] : golden_.members) {
      if (!is_request(id)) continue;
      try {
        request(result, subscript(actual_, id));
      } catch (PyError& error) {
        if (error.kind != "KeyError") error.message = "request " + to_utf8(id) + ": " + error.message;
        throw;
      }
    }
    if (done_.empty()) return "nothing was compared";
    std::string text;
    for (const std::string& what : done_) text += (text.empty() ? "" : ", ") + what;
    return text;
  }

 private:
  // name in METRICS
  bool wanted(std::string_view name) const {
    switch (metrics_.form) {
      case Metrics::Form::kText:
        return metrics_.text.find(name) != std::string::npos;
      case Metrics::Form::kScalar:
        throw PyError{"TypeError", "METRICS is a single value that holds no names"};
      default:
        return std::find(metrics_.names.begin(), metrics_.names.end(), name) != metrics_.names.end();
    }
  }

  void check_ids() const {
    for (const auto& [id, result] : actual_.members) {
      if (is_request(id) && golden_.find(id) == nullptr) {
        assertion("the results have request " + to_utf8(id) + ", the golden has not");
      }
    }
  }

  void throughput() {
    const Value sampled = median(without_first(subscript(actual_, U"throughput")));
    const Value expected = median(without_first(subscript(golden_, U"throughput")));
    const double number = real_number(expected);
    const Order low = compare(sampled, float_value(0.9 * number));
    if (low != Order::kGreater && low != Order::kEqual) assertion("throughput below 0.9 of the golden");
    if (compare(sampled, float_value(number * 1.2)) != Order::kLess) assertion("throughput 1.2 of the golden or more");
    note("throughput");
  }

  static double memory_of(const Value& value) {
    if (value.kind != Kind::kList) return to_float(value);
    if (value.items.empty()) assertion("mem-max-allocated-bytes is an empty list");
    std::vector<Value> numbers;
    for (const Value& item : value.items) numbers.push_back(float_value(to_float(item)));
    if (numbers.size() > 1) numbers.erase(numbers.begin());
    return real_number(median(std::move(numbers)));
  }

  void memory() {
    const Value* actual = actual_.find(U"mem-max-allocated-bytes");
    if (actual == nullptr) assertion("the results have no mem-max-allocated-bytes");
    const double sampled = memory_of(*actual);
    const double expected = memory_of(*golden_.find(U"mem-max-allocated-bytes"));
    if (!(expected > 0)) assertion("mem-max-allocated-bytes of the golden is not above 0");
    if (sampled < 0.95 * expected) assertion("mem-max-allocated-bytes below 0.95 of the golden");
    if (sampled > 1.05 * expected) assertion("mem-max-allocated-bytes above 1.05 of the golden");
    note("mem-max-allocated-bytes");
  }

  // Their way to leave it out takes a name from METRICS, which only a mapping allows.
  void prefill_count() const {
    if (!wanted("lifetime_prefill_token_count") || metrics_.form == Metrics::Form::kMapping) return;
    if (metrics_.form == Metrics::Form::kText) throw PyError{"AttributeError", "METRICS is a text and has no pop()"};
    throw PyError{"TypeError", "lifetime_prefill_token_count in a list of METRICS: pop() takes no name there"};
  }

  // Both that METRICS name it and that the golden has it.
  bool selected(const Value& golden, std::u32string_view key, std::string_view name) const {
    return golden.find(key) != nullptr && wanted(name);
  }

  void request(const Value& golden, const Value& actual) {
    bool tested = false;
    if (golden.kind != Kind::kDict) return not_a_dict(golden);
    if (selected(golden, U"generated_tokens", "generated_tokens")) {
      tested = true;
      if (!equal(*golden.find(U"generated_tokens"), subscript(actual, U"generated_tokens"))) {
        assertion("generated_tokens differ");
      }
      note("generated_tokens");
    }
    if (selected(golden, U"logprobs", "logprobs")) {
      tested = true;
      logprobs(*golden.find(U"logprobs"), subscript(actual, U"logprobs"));
    }
    if (selected(golden, U"generated_text", "generated_text")) {
      tested = true;
      texts(*golden.find(U"generated_text"), subscript(actual, U"generated_text"));
    }
    if (selected(golden, U"routing_indices", "routing_indices")) {
      tested = true;
      routing(golden, subscript(actual, U"routing_indices"));
    }
    if (!tested) assertion("no test was performed: METRICS and the golden have no metric in common");
  }

  // Neither a text nor a list has members, but both can have a metric's name in them; nothing passes here.
  static void not_a_dict(const Value& golden) {
    if (golden.kind == Kind::kText || golden.kind == Kind::kList) assertion("no test was performed: no members");
    throw PyError{"TypeError", std::string("the golden's request is ") + type_name(golden)};
  }

  void logprobs(const Value& golden, const Value& actual) {
    const size_t count = length(golden), other = length(actual);
    if (count != other) {
      assertion("logprobs: " + std::to_string(count) + " of the golden, " + std::to_string(other) + " of the results");
    }
    if (count > 0 && (golden.kind != Kind::kList || actual.kind != Kind::kList)) {
      throw PyError{"TypeError", "logprobs are texts"};
    }
    for (size_t i = 0; i < count; ++i) {
      if (!is_close(golden.items[i], actual.items[i])) assertion("logprobs differ at index " + std::to_string(i));
    }
    note("logprobs");
  }

  void texts(const Value& golden, const Value& actual) {
    const size_t shorter = std::min(length(golden), length(actual));
    if (shorter == 0) assertion("generated_text is empty");
    if (golden.kind == Kind::kDict || actual.kind == Kind::kDict) throw PyError{"TypeError", "a dict has no prefix"};
    Value a = golden, b = actual;
    a.text = a.text.substr(0, shorter);
    b.text = b.text.substr(0, shorter);
    a.items.resize(std::min(a.items.size(), shorter));
    b.items.resize(std::min(b.items.size(), shorter));
    if (!equal(a, b)) assertion("generated_text differs within its first " + std::to_string(shorter) + " characters");
    const bool same = length(golden) == length(actual);
    note(same ? "generated_text" : "generated_text (prefix rule)");
  }

  void routing(const Value& golden, const Value& actual) {
    Array current = make_array(actual);
    const Value* index = golden.find(U"routing_indices_token_indices");
    if (index == nullptr || index->kind == Kind::kNone) assertion("the golden has no routing_indices_token_indices");
    current = take(current, *index);
    Array expected = make_array(*golden.find(U"routing_indices"));
    sort_last_axis(&expected);
    sort_last_axis(&current);
    if (!array_equal(expected, current)) assertion("routing_indices differ");
    note("routing_indices");
  }

  void note(const std::string& what) {
    if (std::find(done_.begin(), done_.end(), what) == done_.end()) done_.push_back(what);
  }

  const Value& golden_;
  const Value& actual_;
  const Metrics& metrics_;
  std::vector<std::string> done_;
};

// A file's JSON; a text is read once more.
Value load(std::u32string_view text) {
  Value value = load_json(text);
  if (value.kind == Kind::kText) value = load_json(std::u32string(value.text));
  return value;
}

void require_dict(const Value& value, const char* whose) {
  if (value.kind != Kind::kDict) {
    throw PyError{"AttributeError", std::string(whose) + " are " + type_name(value) + ", which has no keys()"};
  }
}

CompatVerdict judge(std::string_view golden_bytes, std::string_view actual_bytes, const Metrics& metrics) {
  const std::u32string golden_text = decode_utf8(golden_bytes), actual_text = decode_utf8(actual_bytes);
  if (metrics.form == Metrics::Form::kMissing) throw PyError{"KeyError", "'METRICS'"};
  if (metrics.form == Metrics::Form::kFalsy) return {CompatVerdict::kPassed, "METRICS is empty: nothing is compared"};
  const Value golden = load(golden_text), actual = load(actual_text);
  require_dict(golden, "golden values");
  require_dict(actual, "results");
  return {CompatVerdict::kPassed, Judge(golden, actual, metrics).judge()};
}

}  // namespace

CompatVerdict judge_inference(std::string_view golden, std::string_view actual, const Metrics& metrics,
                              bool lightweight) {
  if (lightweight) return {CompatVerdict::kSkipped, "ENABLE_LIGHTWEIGHT_MODE: nothing is compared"};
  try {
    return judge(golden, actual, metrics);
  } catch (const PyError& error) {
    return {CompatVerdict::kFailed, error.kind + ": " + error.message};
  }
}

}  // namespace assay::compat
