// The core of `assay tokenize`: JSON lines in, JSON lines out, one at a time.
#pragma once

#include <istream>
#include <ostream>

#include "backends/model/tokenizer/tokenizer.h"
#include "core/include/assay/status.h"

namespace assay::model {

// decode false: {"text": "..."} -> {"ids": [...]}. decode true: {"ids": [...]} -> {"text": "..."}, special tokens kept.
// Other fields of a line are dropped. The output is raw UTF-8, one line for each line read.
// The first bad line ends it: its failure, with "line N: " in front (from 1); the lines before it have been written.
// An empty line is bad. kInfra when a stream fails.
Status tokenize_lines(std::istream& in, std::ostream& out, const Tokenizer& tokenizer, bool decode);

}  // namespace assay::model
