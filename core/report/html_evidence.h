// Evidence of one request as HTML. Pure functions, safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "assay/evidence.h"

namespace assay::report {

// Everything that is known of the request, in the order in which a reader asks: prompts, tokens, the split, what
// re-anchoring says, numbers, routing, texts. `open`: unfolded. `word`: what the golden's side is called (wording.h).
std::string evidence_html(const RequestEvidence& evidence, bool open, std::string_view word = "golden");

}  // namespace assay::report
