// The faults that engine faulty offers, as its options schema lists them.
#pragma once

#include <string>
#include <vector>

#include "assay/status.h"
#include "assay/verdict.h"

namespace assay::self_test {

struct FaultRow {
  std::string name;
  std::string family;
  std::string metric;             // that has to notice it; "requests", "repeat", "process": parts of the core
  std::vector<Verdict> verdicts;  // that fit
  std::string places;             // what a seed chooses
  std::string what;               // one line
};

// Reads member "faults" of the schema. kInvalid for a schema without it or with an unknown verdict in it.
Result<std::vector<FaultRow>> read_faults(const std::string& schema);

// True where `name` matches `glob`: '*' any characters, '?' one; comma-separated globs: any of them. "" matches all.
bool matches(const std::string& glob, const std::string& name);

}  // namespace assay::self_test
