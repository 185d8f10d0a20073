// Recording: results of a run become a pending golden beside the old one, never over it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/golden.h"
#include "assay/provenance.h"
#include "core/compare/judge.h"
#include "core/golden/pending.h"
#include "core/govern/drift.h"

namespace assay::govern {

// Where pending goldens of a case lie: its own folder, or DIR/<parent folder>/<case folder> where a folder for them is
// given (`pending_dir`, for trees that cannot be written).
std::string pending_folder(const std::string& case_dir, const std::string& pending_dir);

struct Recording {
  const TestCase* test = nullptr;  // never null
  std::string environment;         // plain names: which golden it may become
  std::string platform;
  ResultSet results;
  Provenance provenance;
  PendingInfo info;         // golden_sha256 is filled in by record()
  std::string pending_dir;  // empty: beside the golden
};

struct Recorded {
  std::string pending;      // path of the file that was written; empty: nothing differs from the golden
  std::string golden_path;  // of the golden it may become
  std::string compared;     // golden that was compared with; empty: none exists
  bool judges = false;  // `compared` judges this platform; false: it is the nearest of another one, to be seen beside
  Drift drift;          // against `compared`
};

// Compares with the golden that judges and, unless nothing differs, writes the pending file; a pending file of an
// earlier recording is replaced, the noise measured in it kept. A pending file that no longer differs from the golden
// is removed. Fails with kInvalid, nothing written: results without requests, with NaN or infinities, a golden that
// cannot be read; kInfra when the file cannot be written.
Result<Recorded> record(Recording recording, const compare::ComparatorLookup& lookup);

// The golden file of the case that says most about what this platform should give: the one that judges, else one of
// the same environment (`any` first, then in order of names), else any; nullopt: the case has none.
std::optional<std::string> nearest_golden(const TestCase& test, const std::string& environment,
                                          const std::string& platform);

}  // namespace assay::govern
