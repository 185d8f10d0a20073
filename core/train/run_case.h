// Runs one repeat of a training case and judges it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/compat.h"
#include "assay/status.h"
#include "assay/verdict.h"
#include "core/train/case_plan.h"
#include "core/train/metrics.h"

namespace assay::train {

// How a run of the program ended.
struct RunEnd {
  int exit_code = 0;  // -1 where a signal ended it
  int signal = 0;
  int restarts = 0;  // by its launcher
  std::string message;

  bool ok() const { return exit_code == 0 && signal == 0; }
};

// What a repeat needs from outside. All members are called from the calling thread.
struct CaseHost {
  // Runs the program to its end; fails where it cannot be run at all.
  std::function<Result<RunEnd>(const Job&)> train;
  // Told when the runs are over and judging begins; may be empty.
  std::function<void()> judging = {};
  // A line about something worth knowing; may be empty.
  std::function<void(const std::string&)> note = {};
  // True: the run is to stop; may be empty.
  std::function<bool()> cancelled = {};
};

struct CaseResult {
  CaseVerdict verdict;
  CompatVerdict compat;             // what Megatron-LM's script would say
  bool engine_failed = false;       // the program, or the engine, failed: nothing was judged. Not where it was refused
  std::optional<MetricSet> actual;  // of run 1
  std::optional<MetricSet> second;  // of run 2, where one resumed
  int restarts = 0;                 // of all runs
};

// `golden`: path of the file that judges, or a failure that says why there is none. Never fails: what goes wrong is the
// verdict. Writes below the folders of the plan alone, actual.json included.
CaseResult run_case(const CasePlan& plan, const Result<std::string>& golden, const CaseHost& host);

}  // namespace assay::train
