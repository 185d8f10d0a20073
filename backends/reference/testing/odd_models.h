// Test support: small models of odd sizes that together use every feature of ModelConfig.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/reference/testing/vector_case.h"

namespace assay::testing {

// Their checkpoints (fp32, bf16 and fp16 in turn), written to a temporary folder of this process, and three sequences
// each; one crosses splits of attention and slices of tokens. A checkpoint that could not be written has the reason in
// its case's name and does not open.
std::vector<VectorCase> odd_cases();

void remove_checkpoints(const std::vector<VectorCase>& cases);

// Valid ids; the same for the same seed.
std::vector<int32_t> some_ids(size_t count, int vocab, uint32_t seed);

}  // namespace assay::testing
