// The style sheet of the page: light and dark by the reader's setting, from 360 px up, no outside reference.
#pragma once

#include <string_view>

namespace assay::report {

extern const std::string_view kPageStyle;

}  // namespace assay::report
