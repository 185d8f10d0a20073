// How long a run would take on many workers: recorded durations, the partition that --shard uses, and machines that
// die.
//
// The model. A simulated run has as many cases as asked for, drawn with replacement from the recorded ones: first a
// model, each as often as it has cases, then one of its cases; cases that recorded the very same load time shared a
// load and are of one model. partition() divides them by their recorded times. Each worker then takes start_seconds,
// and for each model of its share the load and the cases one after the other, each case its recorded time times a
// log-normal factor with a median of 1. Workers die at the loss rate, independently of each other and of what they
// do. With `requeue` another one takes the share over restart_seconds later: it starts and loads anew, runs the case
// that was cut short again and goes on; a case that was cut short kMostAttempts times is given up. Without it the rest
// of the share is not finished. Nothing is shared between workers: no file system, no licence, no scheduler.
// Random numbers come from the seed alone: the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/status.h"
#include "core/run/shard_options.h"

namespace assay::run {

inline constexpr int kMostAttempts = 10;

struct SimulationOptions {
  size_t cases = 0;      // 0: as many as are recorded
  size_t models = 0;     // 0: as many as are recorded; else recorded ones in turn
  double loss_rate = 0;  // workers lost, per worker and hour
  bool requeue = false;
  double start_seconds = 1;      // of a worker, before its first load
  double restart_seconds = 120;  // from the loss of a worker to the start of the next
  double noise = 0.1;            // standard deviation of the logarithm of a case's time
  uint64_t seed = 1;
};

struct SimulatedRun {
  uint32_t workers = 0;
  double predicted = 0;    // seconds: longest share by its recorded times
  double seconds = 0;      // of the whole run
  double work = 0;         // seconds: of all cases and one load a model, without noise
  double utilisation = 0;  // part of workers x seconds in which cases ran whose verdicts count
  uint64_t loads = 0;      // all, also after losses
  uint64_t losses = 0;
  uint64_t again = 0;  // cases that were cut short and run again
  uint64_t unfinished = 0;
};

// Fails with kInvalid where no duration is recorded.
Result<SimulatedRun> simulate(const Durations& durations, uint32_t workers, const SimulationOptions& options);

}  // namespace assay::run
