// Which relations a case is planned for, each a row of its own, and with what parameters. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"
#include "core/metamorphic/relation.h"

namespace assay::run {

// Names of the relations, in the order of the rows; empty: the case is judged by its golden. `metamorphic` is
// --metamorphic: every case then has all relations, or those that its own ASSAY.metamorphic names.
std::vector<std::string> relations_wanted(const TestCase& test, bool metamorphic);

// "moe/x@prefix_cache"; without a relation the name of the case.
std::string row_name(const std::string& case_name, std::string_view relation);
// The name of the case again.
std::string case_of_row(const std::string& row_name, std::string_view relation);

// Defaults, with what the case says over them.
metamorphic::Parameters parameters_of(const TestCase& test);

// Tokens that all ways of a relation compute together, roughly: only the order of groups depends on it.
double relation_tokens(std::string_view relation, const metamorphic::Parameters& parameters);

}  // namespace assay::run
