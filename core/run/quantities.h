// Numbers of a whole case that the worker measures: throughput, memory, prefill counts.
#pragma once

#include <cstdint>
#include <vector>

#include "assay/golden.h"
#include "core/run/engine_session.h"
#include "core/run/worker_plan.h"

namespace assay::run {

inline constexpr std::string_view kThroughput = "throughput";                       // tokens / second, one a pass
inline constexpr std::string_view kPeakMemory = "mem-max-allocated-bytes";          // bytes
inline constexpr std::string_view kPrefillTokens = "lifetime_prefill_token_count";  // tokens

struct Measured {
  std::vector<double> throughput;  // (passes) generated tokens / second
  uint64_t peak_bytes = 0;         // largest resident memory of the worker while the case ran
  uint64_t prefill_tokens = 0;     // of the last pass's engine
  uint64_t restarts = 0;           // SessionResult::restarts of all passes
  bool ran = false;                // an engine was opened
};

// Generated tokens / seconds of one session that took `wall_seconds`, opening the engine included. Counts the seconds
// that the engine spent on prefill and decode, where it tells them.
double throughput_of(const SessionResult& session, double wall_seconds);

// How often a case is run to measure it: order.passes where throughput is wanted, else once.
int passes_of(const CaseOrder& order);

// Adds what METRICS lists, or all of it with order.record_quantities. A number that the engine gives itself, as a
// further field of that name in a request (the last one counts), wins, listed or not, and is taken out of the request.
// An engine whose work cannot be measured from here gives null: the quantity is then left out.
void add_quantities(const CaseOrder& order, const Measured& measured, ResultSet* results);

// Lets the peak of this process's resident memory start again from what it holds now, where the kernel can.
void reset_peak_memory();

}  // namespace assay::run
