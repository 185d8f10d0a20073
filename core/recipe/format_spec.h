// The part of a Python format field after its colon: [[fill]align][sign][#][0][width][grouping][.precision][type].
#pragma once

#include <string>
#include <string_view>

#include "assay/status.h"
#include "core/recipe/value.h"

namespace assay::recipe {

// format(value, spec) of Python. kInvalid where Python raises, kUnsupported for specs of floats and the like.
Result<std::string> apply_format_spec(const Value& value, std::string_view spec);

}  // namespace assay::recipe
