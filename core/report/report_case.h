// What a report knows of one finished case: plain data, made from run events or from a comparison of two files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/verdict.h"

namespace assay::report {

// How a case ran. Zero and empty: not known.
struct Figures {
  std::string engine = {};
  std::string backend = {};
  std::string device = {};
  std::string platform = {};
  std::string arithmetic = {};  // "fp32", "bf16"
  uint64_t requests = 0;
  uint64_t batch = 0;  // requests that one step may hold
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t peak_rss = 0;                                  // bytes
  double prefill_rate = 0;                                // tokens / second
  double decode_rate = 0;                                 // tokens / second
  double tpot_median = 0;                                 // seconds / token
  double load_seconds = 0;                                // of the load, which cases share
  double first_token_seconds = 0;                         // case start to the first request's first token
  std::optional<double> max_abs_logprob_difference = {};  // nats; nullopt: none were compared
};

// One of several runs of a case.
struct ReportRepeat {
  Verdict verdict = Verdict::kNotComparable;
  std::string reason = {};
  double seconds = 0;
  bool identical_to_first = false;  // bit by bit
  std::string difference = {};      // the first value that is not
};

struct ReportCase {
  std::string name = {};      // e.g. "moe/moe_10m_licences_b1"; two roots of one run may hold the same one
  std::string path = {};      // case folder
  std::string relation = {};  // metamorphic::RelationInfo::name that judged; empty: a golden. verdict.golden then names
                              // the results of the reference way, and `actual` those of the changed one
  CaseVerdict verdict = {};
  std::string summary = {};  // one line of figures: engine, backend, requests, batch, memory, rates; empty: nothing ran
  std::string reproduce = {};  // the one command that runs this case again; empty: unknown
  std::string log_tail = {};   // last lines of the engine's log, for failures
  double seconds = 0;
  std::string actual = {};  // path of the results file; empty: none
  Figures figures = {};
  std::vector<ReportRepeat> repeats = {};  // in order; empty: the case was to run once
};

// The text a person reads under a verdict: reason, metrics with their findings, the golden or reference, how to run it
// again.
std::string evidence_text(const ReportCase& report);

}  // namespace assay::report
