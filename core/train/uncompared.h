// Words with which Megatron-LM's script runs a case and compares nothing. Pure.
#pragma once

#include <string>
#include <string_view>

#include "assay/case.h"
#include "core/discover/substitute.h"

namespace assay::train {

// The last value of `name` in ENV_VARS; null: it is not there.
const std::string* env_var(const TestCase& test, std::string_view name);

// ENABLE_LIGHTWEIGHT_MODE is "true" in ENV_VARS or among `variables`.
bool is_lightweight(const TestCase& test, const discover::Variables& variables);

// The word with which the case ends once its program has ended well; empty: it is compared.
//  RECORD_CHECKPOINTS       "true" among `variables`, whatever the case
//  ENABLE_LIGHTWEIGHT_MODE  see is_lightweight; not in MODE rl, nor with TEST_TYPE release
//  SKIP_PYTEST              "1" in ENV_VARS, whatever the case
std::string why_uncompared(const TestCase& test, const discover::Variables& variables);

}  // namespace assay::train
