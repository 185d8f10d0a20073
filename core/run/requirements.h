// ASSAY.requires: what a case needs to be run at all.
#pragma once

#include <string>

#include "assay/case.h"
#include "core/discover/substitute.h"
#include "core/run/backend_choice.h"

namespace assay::run {

// Why the case is to be skipped, in one line; "" when everything it requires is there. A requirement is
//   NAME         a variable that is set (--set, then the environment), else a backend that is usable here
//   device:NAME  a backend that is usable here
//   path:PATH    a file or folder; ${VARIABLE} is replaced, relative ones are found as find_input does
// The first one that is absent is told. May start child processes to ask backends.
std::string absent_requirement(const TestCase& test, const discover::Variables& variables, BackendChoice& backends);

}  // namespace assay::run
