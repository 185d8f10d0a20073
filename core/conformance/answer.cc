#include "core/conformance/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "core/golden/text.h"

namespace assay::conformance {
namespace {

constexpr size_t kShown = 60;    // code points of a text in a message
constexpr double kSlack = 1e-5;  // a logprob computed in fp32 may end a little above 0

bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}

std::string shown(const std::string& value) { return "'" + value.substr(0, 40) + "'"; }
template <class T>
std::string shown(const T& value) {
  return fmt::format("{}", value);
}

template <class T>
std::string differ(const char* name, const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!same(a[i], b[i])) return fmt::format("{}[{}]: {} and {}", name, i, shown(a[i]), shown(b[i]));
  }
  return a.size() == b.size() ? "" : fmt::format("{}: {} and {} values", name, a.size(), b.size());
}

std::string differ(const char* name, const std::string& a, const std::string& b) {
  return a == b ? "" : fmt::format("{}: {} and {}", name, shown(a), shown(b));
}

void expect_logprobs(Findings& findings, const std::string& what, const char* name, std::span<const double> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!findings.expect(
            std::isfinite(values[i]) && values[i] <= kSlack,
            fmt::format("{}: {}[{}] is {}, expected a finite number, 0 or less", what, name, i, values[i]))) {
      return;
    }
  }
}

void expect_utf8(Findings& findings, const std::string& what, const char* name, std::string_view text) {
  findings.expect(is_utf8(text), fmt::format("{}: {} is not UTF-8: {}", what, name, text::quoted(text, kShown)));
}

void copy_top_n(Findings& findings, const std::string& what, const assay_candidates& from, Answer* answer) {
  size_t at = 0;
  for (size_t position = 0; position < from.positions; ++position) {
    const uint32_t count = from.counts[position];
    answer->top_counts.push_back(count);
    for (uint32_t i = 0; i < count; ++i, ++at) {
      const assay_candidate& entry = from.entries[at];
      findings.expect(std::isfinite(entry.logprob) && (i == 0 || entry.logprob <= from.entries[at - 1].logprob),
                      fmt::format("{}: top-n logprobs of position {} do not descend: entry {} is {}", what, position, i,
                                  entry.logprob));
      answer->top_ids.push_back(entry.id);
      answer->top_logprobs.push_back(entry.logprob);
      answer->top_texts.emplace_back(sdk::text(entry.text));
      if (answer->asked_in_utf8) expect_utf8(findings, what, "the text of a top-n entry", answer->top_texts.back());
    }
  }
}

void expect_extra(Findings& findings, const std::string& what, std::string_view extra) {
  if (extra.empty()) return;
  const nlohmann::json json = nlohmann::json::parse(extra, nullptr, false);
  if (!findings.expect(json.is_object(), what + ": `extra` is not a JSON object: " + std::string(extra))) return;
  const auto counters = json.find("engine_counters");
  if (counters == json.end()) return;
  const bool numbers = counters->is_object() &&
                       std::all_of(counters->begin(), counters->end(), [](const auto& one) { return one.is_number(); });
  findings.expect(numbers, what + ": `engine_counters` is not an object of numbers");
}

template <class View>
bool length_is(Findings& findings, const std::string& what, const char* name, const View& view, size_t expected) {
  return findings.expect(view.size == 0 || view.size == expected,
                         fmt::format("{}: {} has {} values, expected none or {}", what, name, view.size, expected));
}

}  // namespace

void copy_result(Findings& findings, const std::string& what, const assay_result& result, Answer* answer) {
  if (!findings.expect(result.size >= offsetof(assay_result, generated_ranks),
                       fmt::format("{}: its `size` is {}, expected sizeof(assay_result), at least {}", what,
                                   result.size, offsetof(assay_result, generated_ranks)))) {
    return;
  }
  answer->prompt = sdk::text(result.prompt);
  answer->text = sdk::text(result.text);
  if (answer->asked_in_utf8) {
    expect_utf8(findings, what, "`prompt`", answer->prompt);
    expect_utf8(findings, what, "`text`", answer->text);
  }
  const auto ids = sdk::ids(result.prompt_ids);
  answer->prompt_ids.assign(ids.begin(), ids.end());
  const auto tokens = sdk::ids(result.tokens);
  answer->tokens.assign(tokens.begin(), tokens.end());
  const auto prompt_logprobs = sdk::doubles(result.prompt_logprobs);
  const auto generated_logprobs = sdk::doubles(result.generated_logprobs);
  answer->prompt_logprobs.assign(prompt_logprobs.begin(), prompt_logprobs.end());
  answer->generated_logprobs.assign(generated_logprobs.begin(), generated_logprobs.end());
  expect_logprobs(findings, what, "prompt_logprobs", prompt_logprobs);
  expect_logprobs(findings, what, "generated_logprobs", generated_logprobs);
  copy_top_n(findings, what, result.generated_top_n, answer);
  if (result.prompt_ids.size > 0) {
    length_is(findings, what, "prompt_logprobs", result.prompt_logprobs, result.prompt_ids.size - 1);
  }
  if (result.tokens.size > 0) {
    length_is(findings, what, "generated_logprobs", result.generated_logprobs, result.tokens.size);
    length_is(findings, what, "tpot", result.tpot, result.tokens.size);
    findings.expect(result.generated_top_n.positions == 0 || result.generated_top_n.positions == result.tokens.size,
                    fmt::format("{}: generated_top_n has {} positions, expected none or {}", what,
                                result.generated_top_n.positions, result.tokens.size));
  }
  answer->tpot = result.tpot.size;
  for (double seconds : sdk::doubles(result.tpot)) {
    findings.expect(std::isfinite(seconds) && seconds >= 0,
                    fmt::format("{}: a time per token is {} s, expected 0 or more", what, seconds));
  }
  findings.expect(std::isfinite(result.latency) && result.latency >= 0,
                  fmt::format("{}: latency is {} s, expected 0 (not known) or more", what, result.latency));
  if (result.routing != nullptr) {
    const size_t values = result.routing_tokens * result.moe_layers * result.moe_topk;
    answer->routing.assign(result.routing, result.routing + values);
    if (result.prompt_ids.size > 0 && result.tokens.size > 0) {
      findings.expect(result.routing_tokens == result.prompt_ids.size + result.tokens.size - 1,
                      fmt::format("{}: routing of {} tokens, expected prompt + generated - 1 = {}", what,
                                  result.routing_tokens, result.prompt_ids.size + result.tokens.size - 1));
    }
  }
  if (ASSAY_KNOWS(&result, generated_logits)) {
    length_is(findings, what, "generated_ranks", result.generated_ranks, result.tokens.size);
    length_is(findings, what, "generated_logits", result.generated_logits, result.tokens.size);
  }
  expect_extra(findings, what, sdk::text(result.extra));
}

std::string first_difference(const Answer& a, const Answer& b) {
  if (a.ended != b.ended || a.code != b.code) {
    const auto end = [](const Answer& one) { return one.ended ? code_name(one.code) : std::string("no end"); };
    return fmt::format("ended with {} and {}", end(a), end(b));
  }
  for (const std::string& difference :
       {differ("prompt_ids", a.prompt_ids, b.prompt_ids), differ("tokens", a.tokens, b.tokens),
        differ("text", a.text, b.text), differ("prompt", a.prompt, b.prompt),
        differ("prompt_logprobs", a.prompt_logprobs, b.prompt_logprobs),
        differ("generated_logprobs", a.generated_logprobs, b.generated_logprobs),
        differ("top-n counts", a.top_counts, b.top_counts), differ("top-n ids", a.top_ids, b.top_ids),
        differ("top-n logprobs", a.top_logprobs, b.top_logprobs), differ("top-n texts", a.top_texts, b.top_texts),
        differ("routing", a.routing, b.routing), differ("streamed tokens", a.streamed, b.streamed)}) {
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace assay::conformance
