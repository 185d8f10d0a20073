// What the .cc files of CaseRunner share; for them alone.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "assay/golden.h"
#include "assay/provenance.h"
#include "assay/verdict.h"
#include "core/run/case_runner.h"
#include "core/run/case_summary.h"
#include "core/run/stopwatch.h"

namespace assay::run {

struct CaseRunner::Files {
  explicit Files(std::filesystem::path where)
      : folder(std::move(where)),
        actual(folder / "actual.json"),
        reference(folder / "reference.json"),
        log(folder / "engine.log") {}

  std::filesystem::path folder;
  std::filesystem::path actual;
  std::filesystem::path reference;  // of a relation: the other side
  std::filesystem::path log;
};

struct CaseRunner::Judged {
  CaseVerdict verdict;
  CaseSummary summary;
  ResultSet results;
  std::optional<Provenance> provenance;
  uint64_t restarts = 0;  // of a program that answered requests, by its launcher
  bool actual_written = false;
  bool engine_failed = false;  // it died, or refused or failed a request: nothing was judged
};

}  // namespace assay::run
