#include "core/compare/check_prompts.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/sdk.hpp"
#include "core/compare/checks.h"
#include "core/compare/reanchoring.h"
#include "core/compare/views.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

void check_texts(const RequestRecord& golden, const RequestRecord& result, bool escaped, const AddFault& add) {
  constexpr size_t kBefore = 30;
  constexpr size_t kAfter = 30;
  if (!golden.prompt || !result.prompt || *golden.prompt == *result.prompt) return;
  RecordView a(golden);
  RecordView b(result);
  if (escaped) a.unescape_newlines();
  if (escaped) b.unescape_newlines();
  const std::string_view golden_prompt = sdk::text(a.record().prompt);
  const std::string_view result_prompt = sdk::text(b.record().prompt);
  if (golden_prompt == result_prompt) return;
  const size_t equal = text::common_prefix(golden_prompt, result_prompt);
  const size_t index = text::count(golden_prompt.substr(0, equal));
  add(golden.id, static_cast<int64_t>(index),
      fmt::format("prompts differ at code point {}: golden {}, result {}; these are two questions", index,
                  text::around(golden_prompt, equal, kBefore, kAfter),
                  text::around(result_prompt, equal, kBefore, kAfter)));
}

// "[.. 7 4 |9 11 ..]": ids around `index`, with the token's text where a top-n list tells it.
std::string ids_around(const RequestRecord& record, size_t index) {
  constexpr size_t kBefore = 4;
  constexpr size_t kAfter = 6;
  const std::vector<int32_t>& ids = *record.prompt_ids;
  const auto text_of = [&](int32_t id) -> std::string {
    for (const std::optional<TopLists>* lists : {&record.prompt_top_n, &record.top_n}) {
      if (!*lists) continue;
      for (const TopEntry& entry : (*lists)->entries) {
        if (entry.id == id) return text::quoted(entry.text, 12);
      }
    }
    return "";
  };
  const size_t begin = index > kBefore ? index - kBefore : 0;
  const size_t end = std::min(ids.size(), index + kAfter);
  std::string shown = begin > 0 ? "[.." : "[";
  for (size_t i = begin; i < end; ++i) {
    shown += fmt::format("{}{}{}{}", i == 0 ? "" : " ", i == index ? "|" : "", ids[i], text_of(ids[i]));
  }
  if (index >= ids.size()) shown += " |";
  return shown + (end < ids.size() ? " ..]" : "]");
}

void check_ids(const RequestRecord& golden, const RequestRecord& result, const AddFault& add) {
  const std::vector<int32_t>& a = *golden.prompt_ids;
  const std::vector<int32_t>& b = *result.prompt_ids;
  if (a == b) return;
  const auto both = static_cast<ptrdiff_t>(std::min(a.size(), b.size()));
  const auto index = static_cast<size_t>(std::mismatch(a.begin(), a.begin() + both, b.begin()).first - a.begin());
  add(golden.id, static_cast<int64_t>(index),
      fmt::format("prompt tokens differ at index {}: golden {} ({} ids), result {} ({} ids); the tokenizer or its "
                  "special tokens changed: these are two questions",
                  index, ids_around(golden, index), a.size(), ids_around(result, index), b.size()));
}

struct PromptLength {
  size_t tokens = 0;
  const char* by = "";  // what tells
};

// Number of prompt tokens as far as a record tells. Logprobs without a prompt part tell nothing.
std::optional<PromptLength> prompt_length(const RequestRecord& record) {
  if (record.prompt_ids) return PromptLength{record.prompt_ids->size(), "prompt ids"};
  const size_t generated = record.tokens ? record.tokens->size() : 0;
  const size_t values = logprob_count(record);
  if (!record.tokens || values <= generated) return std::nullopt;
  return PromptLength{values - generated + 1, "logprobs"};
}

void check_lengths(const RequestRecord& golden, const RequestRecord& result, const AddFault& add) {
  const std::optional<PromptLength> a = prompt_length(golden);
  const std::optional<PromptLength> b = prompt_length(result);
  if (!a || !b || a->tokens == b->tokens) return;
  add(golden.id, static_cast<int64_t>(std::min(a->tokens, b->tokens)),
      fmt::format("numbers of prompt tokens differ: golden {} (told by its {}), result {} (told by its {}); the same "
                  "text became other tokens: these are two questions",
                  a->tokens, a->by, b->tokens, b->by));
}

}  // namespace

void check_prompts(const ResultSet& golden, const ResultSet& actual, const AddFault& add) {
  const bool escaped = escapes_newlines(golden) || escapes_newlines(actual);
  for (const RequestRecord& reference : golden.requests) {
    const RequestRecord* candidate = actual.find(reference.id);
    if (candidate == nullptr) continue;
    check_texts(reference, *candidate, escaped, add);
    if (reference.prompt_ids && candidate->prompt_ids) {
      check_ids(reference, *candidate, add);
    } else {
      check_lengths(reference, *candidate, add);
    }
  }
}

}  // namespace assay::compare
