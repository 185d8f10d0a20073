// The self-test: every fault at every seed has to be noticed, no benign change may be.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "assay/status.h"
#include "tools/self_test/fault_list.h"
#include "tools/self_test/trial.h"
#include "tools/self_test/workshop.h"

namespace assay::self_test {

// Trials of one fault.
struct FaultReport {
  FaultRow fault;
  std::string metrics;  // METRICS of its cases
  std::vector<Trial> trials;

  size_t count(Fate fate) const;
  size_t places() const;  // distinct ones
  bool passed() const { return !trials.empty() && count(Fate::kKilled) == trials.size(); }
};

// One benign change. An alarm is a verdict that does not pass.
struct ControlReport {
  std::string name;
  std::string what;
  Verdict verdict = Verdict::kInfra;
  bool absent = false;  // this machine cannot do it; neither alarm nor pass
  std::string reason = {};
  std::string reproduce = {};

  bool alarm() const { return !absent && !passes(verdict); }
};

struct SelfTestReport {
  std::vector<FaultReport> faults;
  std::vector<ControlReport> controls;
  double seconds = 0;

  size_t trials() const;
  size_t killed() const;
  size_t alarms() const;
  bool passed() const { return !faults.empty() && killed() == trials() && alarms() == 0; }
};

// Metrics that cases of the self-test name, besides those that a fault claims.
inline constexpr const char* kOwnMetrics[] = {"generated_text", "generated_tokens", "logprobs", "routing_indices",
                                              "top_n_logprobs"};

// Arguments of cases whose tokens are drawn, far enough from greedy that another draw is another token.
inline const std::map<std::string, std::string> kSampled = {{"--top_k", "0"}, {"--temperature", "3.0"}};

struct CampaignOptions {
  std::vector<TestCase>
      cases;  // the first with characteristic values is the base, the first known completion the other
  std::vector<FaultRow> faults;
  std::set<std::string> served;  // metrics that a comparator serves
  uint64_t seeds = 10;
  std::function<void(const std::string& line)> progress = {};  // may be null
};

// Fails when no self-test can be made: no base among the cases, the correct engine does not run, a disk that fails.
Result<SelfTestReport> run_campaign(const CampaignOptions& options, Workshop& workshop);

// The benign changes alone; `common`: metrics and arguments of all their cases.
Result<std::vector<ControlReport>> run_controls(const Base& base, const CaseChange& common, Workshop& workshop);

}  // namespace assay::self_test
