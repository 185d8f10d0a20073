#include "core/compare/same_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/golden/text.h"

namespace assay::compare {
namespace {

constexpr size_t kShownToken = 30;  // code points of a token

// Values are the same when their bits are: NaN equals itself, -0.0 differs from 0.0.
bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
bool same_bits(int32_t a, int32_t b) { return a == b; }

template <class T>
std::string difference_of(const char* field, const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!same_bits(a[i], b[i])) return fmt::format("{}[{}]: {} and {}", field, i, a[i], b[i]);
  }
  return a.size() == b.size() ? "" : fmt::format("{}: {} and {} values", field, a.size(), b.size());
}

std::string difference_of(const char* field, const std::string& a, const std::string& b) {
  if (a == b) return "";
  const size_t at = text::common_prefix(a, b);
  constexpr size_t kShown = 20;  // code points on either side
  return fmt::format("{}, code point {}: {} and {}", field, text::count(std::string_view(a).substr(0, at)),
                     text::around(a, at, kShown, kShown), text::around(b, at, kShown, kShown));
}

std::string difference_of(const char* field, const TopLists& a, const TopLists& b) {
  const auto same = [](const TopEntry& x, const TopEntry& y) {
    return x.text == y.text && same_bits(x.logprob, y.logprob);
  };
  size_t entry = 0;
  for (size_t i = 0; i < std::min(a.counts.size(), b.counts.size()); ++i) {
    if (a.counts[i] != b.counts[i]) return fmt::format("{}[{}]: {} and {} entries", field, i, a.counts[i], b.counts[i]);
    for (uint32_t k = 0; k < a.counts[i]; ++k, ++entry) {
      const TopEntry& x = a.entries[entry];
      const TopEntry& y = b.entries[entry];
      if (same(x, y)) continue;
      return fmt::format("{}[{}], rank {}: {} {} and {} {}", field, i, k, text::quoted(x.text, kShownToken), x.logprob,
                         text::quoted(y.text, kShownToken), y.logprob);
    }
  }
  return a.counts.size() == b.counts.size()
             ? ""
             : fmt::format("{}: {} and {} positions", field, a.counts.size(), b.counts.size());
}

std::string difference_of(const char* field, const Routing& a, const Routing& b) {
  if (a.tokens != b.tokens || a.layers != b.layers || a.topk != b.topk) {
    return fmt::format("{}: {} x {} x {} and {} x {} x {}", field, a.tokens, a.layers, a.topk, b.tokens, b.layers,
                       b.topk);
  }
  const size_t width = a.layers * a.topk;
  for (size_t i = 0; i < std::min(a.experts.size(), b.experts.size()); ++i) {
    if (a.experts[i] == b.experts[i]) continue;
    return fmt::format("{}, token {}, layer {}: expert {} and {}", field, i / width, i % width / a.topk, a.experts[i],
                       b.experts[i]);
  }
  return difference_of("routing margins", a.margins, b.margins);
}

template <class T>
std::string difference_of(const char* field, const std::optional<T>& a, const std::optional<T>& b) {
  if (a && b) return difference_of(field, *a, *b);
  if (!a && !b) return "";
  return fmt::format("{}, which only the {} has", field, a ? "first" : "second");
}

std::string difference_of(const RequestRecord& a, const RequestRecord& b) {
  std::string found = difference_of("prompt ids", a.prompt_ids, b.prompt_ids);
  if (found.empty()) found = difference_of("token", a.tokens, b.tokens);
  if (found.empty()) found = difference_of("text", a.text, b.text);
  if (found.empty()) found = difference_of("logprobs", a.logprobs, b.logprobs);
  if (found.empty()) found = difference_of("prompt logprobs", a.prompt_logprobs, b.prompt_logprobs);
  if (found.empty()) found = difference_of("generated logprobs", a.generated_logprobs, b.generated_logprobs);
  if (found.empty()) found = difference_of("top-n", a.top_n, b.top_n);
  if (found.empty()) found = difference_of("prompt top-n", a.prompt_top_n, b.prompt_top_n);
  if (found.empty()) found = difference_of("routing", a.routing, b.routing);
  return found;
}

}  // namespace

std::string first_difference(const ResultSet& first, const ResultSet& other) {
  for (size_t i = 0; i < std::min(first.requests.size(), other.requests.size()); ++i) {
    const RequestRecord& a = first.requests[i];
    const RequestRecord& b = other.requests[i];
    if (a.id != b.id) return fmt::format("request ids: {} and {}", text::printable(a.id), text::printable(b.id));
    if (const std::string found = difference_of(a, b); !found.empty()) {
      return fmt::format("request {}: {}", text::printable(a.id), found);
    }
  }
  if (first.requests.size() == other.requests.size()) return "";
  return fmt::format("requests: {} and {}", first.requests.size(), other.requests.size());
}

}  // namespace assay::compare
