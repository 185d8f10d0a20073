// The numbers that a performance metric judges, gathered from both sides of a case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/plugin_abi.h"

namespace assay::performance {

// One side's values of a metric, in the unit of the file (tokens/s, seconds, bytes, tokens).
struct Side {
  std::vector<double> all;     // as recorded, in order of request and position
  std::vector<double> judged;  // without the warm-up
  std::string note;            // one line where no warm-up could be dropped; empty: none
};

// Why a side cannot be judged. `missing`: it does not hold the metric; else it holds no valid values.
struct Fault {
  bool missing = false;
  std::string message;  // one line; empty: no fault
};

// Both sides of one metric. The first fault found is in `fault`; the sides are then not to be used.
struct Sides {
  Side golden;
  Side result;
  Fault fault;
};

// A top-level number or list. Of a list longer than 1 the first value is the warm-up.
Sides collect_quantity(const assay_judgement& judgement);

// tpot of all requests. The first value of each holds its prefill and is left out.
Sides collect_tpot(const assay_judgement& judgement);

// latency of all requests.
Sides collect_latency(const assay_judgement& judgement);

// Of a list that is not empty; the mean of the middle two where their number is even.
double median(std::vector<double> values);

}  // namespace assay::performance
