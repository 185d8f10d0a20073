// A waiver: somebody answers, until a day, for a case that fails. Plain data, as ASSAY.waivers has it.
#pragma once

#include <string>
#include <vector>

#include "assay/verdict.h"

namespace assay {

struct Waiver {
  std::string reason;                          // why the failure is accepted for now
  std::string owner;                           // who answers for it
  std::string issue;                           // where it is worked on: a link or number
  std::string expires;                         // last day on which it counts, UTC, "2026-12-31"
  std::vector<Verdict> verdicts = {};          // what it covers; failing verdicts, never empty
  std::vector<std::string> metrics = {};       // every metric that fails must be among these; empty: any
  std::vector<std::string> platforms = {};     // empty: any
  std::vector<std::string> environments = {};  // empty: any
  std::vector<std::string> relations = {};     // metamorphic ones that it concerns alone; empty: any, and goldens
  bool expect_failure = false;                 // the case has to fail: a pass is XPASS
};

}  // namespace assay
