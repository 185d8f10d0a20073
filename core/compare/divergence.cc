#include "core/compare/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "assay/sdk.hpp"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

constexpr size_t kBefore = 40;  // code points shown before the difference
constexpr size_t kAfter = 30;   // and from it on

std::string token_text(const assay_record& record, size_t index) {
  if (index >= record.tokens.size) return "no token";
  const std::optional<double> logprob = generated_logprob(record, index);
  const int32_t id = record.tokens.data[index];
  return logprob ? fmt::format("{} (logprob {:.6g})", id, *logprob) : fmt::format("{} (logprob not recorded)", id);
}

size_t differing_from(assay_ids a, assay_ids b, size_t index) {
  const size_t both = std::min(a.size, b.size);
  size_t differing = std::max(a.size, b.size) - both;
  for (size_t i = index; i < both; ++i) differing += a.data[i] != b.data[i] ? 1U : 0U;
  return differing;
}

}  // namespace

std::optional<size_t> first_divergent_token(assay_ids a, assay_ids b) {
  const size_t both = std::min(a.size, b.size);
  for (size_t i = 0; i < both; ++i) {
    if (a.data[i] != b.data[i]) return i;
  }
  if (a.size == b.size) return std::nullopt;
  return both;
}

std::optional<double> generated_logprob(const assay_record& record, size_t index) {
  const bool recorded = (record.has & ASSAY_HAS_LOGPROBS) != 0 && record.logprobs.size >= record.tokens.size;
  if (!recorded || index >= record.tokens.size) return std::nullopt;
  return record.logprobs.data[record.logprobs.size - record.tokens.size + index];
}

std::string describe_text_difference(const assay_record& reference, const assay_record& candidate) {
  if ((reference.has & candidate.has & ASSAY_HAS_TEXT) == 0) return "";
  const std::string_view golden = sdk::text(reference.text);
  const std::string_view result = sdk::text(candidate.text);
  const size_t equal = text::common_prefix(golden, result);
  if (equal == golden.size() && equal == result.size()) return "";
  return fmt::format("text differs at code point {}: golden {}, result {}", text::count(golden.substr(0, equal)),
                     text::around(golden, equal, kBefore, kAfter), text::around(result, equal, kBefore, kAfter));
}

std::string describe_tokens(const assay_record& reference, const assay_record& candidate, size_t index) {
  return fmt::format(
      "first divergent token {}: golden {}, result {}; {} of {} tokens match before it, {} differ from "
      "there on",
      index, token_text(reference, index), token_text(candidate, index), index, reference.tokens.size,
      differing_from(reference.tokens, candidate.tokens, index));
}

std::string describe_divergence(const assay_record& reference, const assay_record& candidate, size_t index) {
  const std::string texts = describe_text_difference(reference, candidate);
  return describe_tokens(reference, candidate, index) + (texts.empty() ? "" : "; " + texts);
}

}  // namespace assay::compare
