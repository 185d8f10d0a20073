// The layout of golden files that people and version control read: the same set always gives the same lines, and one
// changed value changes one line.
#pragma once

#include <string>

#include "assay/golden.h"

namespace assay {

// The JSON text of a set, for reading back by read_results_text; ends with a newline. Values and spellings are those
// of results_text.
//  - Order: requests as in the set (ascending ids), then the other members by name, then "assay". Inside requests and
//    further objects, members ascend bytewise. Objects that stand in a list keep their order (in top-n lists it means
//    something).
//  - Two blanks of indentation a level. A list of at most kShortList plain values stands on one line, a longer one has
//    one value a line. A list of lists or objects has one innermost list, or one object of plain values, a line.
std::string stable_text(const ResultSet& set);
inline constexpr size_t kShortList = 8;

}  // namespace assay
