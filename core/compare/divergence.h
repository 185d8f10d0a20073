// Where two token sequences part, and what there is to say about it. Shared by comparators; pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "assay/plugin_abi.h"

namespace assay::compare {

// Index of the first token that differs or that one side lacks; nullopt when ids and lengths are equal.
std::optional<size_t> first_divergent_token(assay_ids a, assay_ids b);

// Logprob of generated token `index` of a record, nullopt where none is recorded. The generated part of `logprobs` is
// its last tokens.size values.
std::optional<double> generated_logprob(const assay_record& record, size_t index);

// One line: the ids at `index` of both sides with their logprobs, how many tokens match before it and differ after it,
// and the texts around the first code point where they part. `index` as from first_divergent_token.
std::string describe_divergence(const assay_record& reference, const assay_record& candidate, size_t index);

// The part of describe_divergence about tokens.
std::string describe_tokens(const assay_record& reference, const assay_record& candidate, size_t index);

// The part of describe_divergence about texts: `text differs at code point N: golden "...", result "..."`; empty when
// a text is missing or they do not differ.
std::string describe_text_difference(const assay_record& reference, const assay_record& candidate);

}  // namespace assay::compare
