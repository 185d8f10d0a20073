// The figures of one case, from what its session and its verdict tell. Pure.
#pragma once

#include "assay/verdict.h"
#include "core/run/engine_session.h"
#include "core/run/run.h"

namespace assay::run {

// Batch, token counts, rates and times of a session.
void add_session(const SessionResult& session, CaseSummary* summary);

// The largest difference of logprobs that the verdict found, where they were compared.
void add_difference(const CaseVerdict& verdict, CaseSummary* summary);

}  // namespace assay::run
