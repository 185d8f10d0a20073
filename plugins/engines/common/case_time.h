// The time of a case, as an engine sees to it that waits for others.
#pragma once

#include <chrono>
#include <string>

#include "assay/status.h"

namespace assay::engines {

// Seconds of a case's time that an engine leaves alone, so that it can end what it started and its results be judged
// before the case is ended: a tenth, at most 10 s.
double reserve_of(double case_seconds);

struct CaseTime {
  using Clock = std::chrono::steady_clock;

  double seconds = 0;                      // of the case; 0: it has no limit
  Clock::time_point began = Clock::now();  // the case, not the engine: a case may open several

  // When the engine has to be done: the case's end less the reserve; the clock's last moment without a limit.
  Clock::time_point ends() const;
  // "the case's time is up (ASSAY.timeout is 120 s, 10 s of them are kept for judging)"; "" without a limit.
  std::string text() const;
};

// Reads option `case_time`, which the core fills in: {"seconds": S, "began_ns": N}, N by the machine's monotonic clock;
// now without it. `what` names the object in messages. kInvalid as OptionsReader.
Result<CaseTime> read_case_time(const std::string& json, const std::string& what);

}  // namespace assay::engines
