// Whether a judged run is what its engine does: its own tokens fed back to the engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "assay/golden.h"
#include "core/compare/rerun.h"

namespace assay::compare {

// One line: where the engine, after the judged run's own tokens, takes another token than the judged run did, goes on
// where it ended, or does not get as far. Empty: nowhere. `again`: of Rerun::run_own. A token that is not the one the
// rerun prefers is let through where both have the same logit; or, where the two runs' logprobs show that the engine's
// numbers vary from run to run, within 2 ULP of their dtype. Pure function.
std::string own_contradiction(const RequestRecord& judged, const RerunRequest& again, int mantissa);

// One line: `text` (whose name is `name`) is not what the engine, fed the same tokens, says. Empty: it is, or a side is
// not known. Pure function.
std::string text_contradiction(std::string_view name, const std::optional<std::string>& text,
                               const RerunRequest& again);

}  // namespace assay::compare
