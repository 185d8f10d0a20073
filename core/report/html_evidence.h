// Evidence of one request as HTML. Pure functions, safe from any thread.
#pragma once

#include <string>

#include "assay/evidence.h"

namespace assay::report {

// Everything that is known of the request, in the order in which a reader asks: prompts, tokens, the split, what
// re-anchoring says, numbers, routing, texts. `open`: unfolded.
std::string evidence_html(const RequestEvidence& evidence, bool open);

// What re-anchoring says, in plain words, as text.
std::string reanchoring_text(const Reanchoring& reanchoring);

// The split in plain words, as text: who says what, the gap and the rank.
std::string split_text(const Split& split);

}  // namespace assay::report
