// Noise of an engine on one device: how far results are apart that should be equal.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/golden.h"
#include "assay/provenance.h"
#include "core/govern/record.h"

namespace assay::govern {

// One repeat.
struct CalibrationRun {
  std::string shape;  // "batch 1"
  ResultSet results;
};

struct MetricSpread {
  std::string metric;
  MetricNoise noise;       // max and p99 in the metric's unit; relative for performance metrics
  uint64_t compared = 0;   // pairs of values; of performance metrics: repeats
  uint64_t differing = 0;  // of them
};

struct Calibration {
  NoiseModel noise;                   // what a golden keeps
  std::vector<MetricSpread> metrics;  // generated_tokens, logprobs, routing_indices, then those of performance
  std::vector<std::string> notes;     // one line each
};

// Compares every pair of repeats, whatever their shapes; performance metrics only within a shape, since another batch
// has another speed.
//  - generated_tokens: positions; where two repeats part, nothing after that position is compared
//  - logprobs: |difference|, nats, prompt and generated positions before the first that parts
//  - routing_indices: sets of experts of requests whose tokens are equal; its noise is that of the router's margins,
//    where they are recorded (what decides about near-ties)
//  - tpot, latency, quantities: (max - min) / median of the repeats' medians, the first (warm-up) value left out
// Fails with kInvalid: fewer than two repeats, other requests in one of them, NaN or infinities.
Result<Calibration> calibrate(const std::vector<CalibrationRun>& runs);

// The smallest round tolerance that leaves room: twice the largest |difference|, three times a relative spread, rounded
// up to one significant digit; 0 where nothing differs.
double proposed_tolerance(const MetricSpread& spread);

// The table, and the ASSAY.tolerance lines that follow from it.
std::string calibration_text(const Calibration& calibration);

// Puts the noise into the pending golden of this environment and platform; without one, into a new pending golden that
// says what the judging golden says. `recording.results` are not used. Returns the path. Fails with kNotFound where
// there is neither, kInfra when it cannot be written.
Result<std::string> write_noise(const Recording& recording, const NoiseModel& noise);

}  // namespace assay::govern
