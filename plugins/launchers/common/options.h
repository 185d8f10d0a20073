// Names of options: an unknown one is refused with the nearest that exists.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "assay/status.h"

namespace assay::launchers {

// kInvalid: `json` is no JSON object, or has a member that is not among `known`. "" counts as {}.
Status check_names(std::string_view json, const std::string& what, std::initializer_list<std::string_view> known);

}  // namespace assay::launchers
