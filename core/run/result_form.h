// Which of Megatron-LM's scripts a set of results is written like.
#pragma once

#include "assay/golden.h"

namespace assay::run {

// Form D where the engine gave a `cuda_graph_request_count_map`, as the dynamic script's results have one: records then
// hold prompt_logprobs and generated_logprobs beside logprobs, null in place of top-n lists that nobody asked for, and
// all the step_count of the last one to end. Else form S.
void set_form(ResultSet* results);

// Leaves requests 0, every, 2 * every ... and the last one, in the order of the set; `every` >= 1.
void keep_every(size_t every, ResultSet* results);
// As many are left of `requests`.
size_t kept_of(size_t requests, size_t every);

}  // namespace assay::run
