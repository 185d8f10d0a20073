// Known completions: the text that every correct engine must produce, cut from the file that holds it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::compare {

// Fewer code points than this before the first blank line prove nothing.
inline constexpr size_t kLeastKnownCompletion = 40;

struct SourceText {
  std::string path;
  std::string text;  // UTF-8, "\r\n" read as "\n"
};

// Fails with kInvalid naming the file: missing, unreadable, empty or not UTF-8.
Result<std::vector<SourceText>> load_sources(const std::vector<std::string>& paths);

// What is known of one request.
struct KnownRequest {
  std::string_view id;
  std::optional<std::string_view> prompt;
  std::optional<std::string_view> golden_text;  // the golden's generated_text
  std::optional<std::string_view> actual_text;  // decides how far the reference reaches, never what it says
  bool out_of_tokens = false;  // the result holds all tokens that the case asks for, and the golden not just as many
};

// The reference text for the request. What precedes its first blank line judges and must be reached by the result:
//  - the known completion up to its blank line where the result gets that far, the rest following for the report;
//  - else its part up to the result's end, but at least the golden's part before the golden's first blank line (the
//    whole known completion where the golden has no text): the result may only stop early where the golden did. One
//    that is out of tokens may stop before, behind kLeastKnownCompletion code points: the golden came from a longer
//    run.
// Fails with kInvalid: the prompt is unknown or does not occur exactly once in all sources together (says how often
// and where), fewer than kLeastKnownCompletion code points follow before the first blank line, or the golden's own
// text contradicts the source.
Result<std::string> known_reference(const std::vector<SourceText>& sources, const KnownRequest& request);

// Checks a golden text that is its own reference: kInvalid when it is missing or too short before its blank line.
Status check_own_reference(const KnownRequest& request);

}  // namespace assay::compare
