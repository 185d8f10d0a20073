// What a report knows of one finished case: plain data, made from run events or from a comparison of two files.
#pragma once

#include <cstdint>
#include <string>

#include "assay/verdict.h"

namespace assay::report {

struct ReportCase {
  std::string name;  // unique within a run, e.g. "moe/moe_10m_licences_b1"
  std::string path;  // case folder
  CaseVerdict verdict;
  std::string summary;    // one line of figures: engine, backend, requests, batch, memory, rates; empty: nothing ran
  std::string reproduce;  // the one command that runs this case again; empty: unknown
  std::string log_tail;   // last lines of the engine's log, for failures
  double seconds = 0;
};

// The text a person reads under a verdict: reason, metrics with their findings, the golden, how to run it again.
std::string evidence_text(const ReportCase& report);

}  // namespace assay::report
