// What a metric tolerates where the case does not say: derived from the dtype of the logits and from recorded noise.
// Pure functions.
#pragma once

#include <string>

#include "core/compare/emit.h"

namespace assay::compare {

struct Tolerance {
  double value = 0;    // largest accepted |difference|, inclusive
  std::string source;  // where it comes from, words for a message: "2 ULP of bf16 at logits of 8 to 16"
};

// Of logprobs, in nats. ASSAY.tolerance rules alone. Else 1e-3 (what Megatron-LM takes) for fp32 and unknown dtypes;
// for fp16 and bf16 2 ULP of a logit: at options.logit where it is known, else in the binade 8 to 16 where large
// logits of language models lie, and at least 1e-3. Recorded noise raises it to 2 * noise.max.
Tolerance logprob_tolerance(const ComparatorOptions& options);

// Of margins between router scores. ASSAY.tolerance rules alone. Else 2 ULP at 1, where sigmoid and softmax scores are
// at most, of the logits' dtype (fp32 where it is not known): a router that computes in fp32 still reads activations
// of that dtype. Recorded noise raises it to 2 * noise.max.
Tolerance margin_tolerance(const ComparatorOptions& options);

}  // namespace assay::compare
