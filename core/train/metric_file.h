// Golden and result files of training cases: {metric: {start_step, end_step, step_interval, values: {step: number}}}.
#pragma once

#include <string>
#include <string_view>

#include "assay/status.h"
#include "core/train/metrics.h"

namespace assay::train {

// Bare NaN and infinities are read as numbers, strings as values that are no number. A top level that is a string
// holding the object is read as the object. Of a key that stands twice the last one counts, and the metric has a flaw;
// so has one with a string that is not "nan". Read wholly, values that are not at the steps that it states are its gap.
// Fails with one line that names the path and the metric, or line and column: kNotFound (no such file), kInfra
// (unreadable), kInvalid (anything else, a folder or a named pipe included).
// Loosely: as Megatron-LM's RL comparator reads, which looks at no more than it compares; a metric without values by
// step is `unusable`, the other members may be absent.
enum class Schema : uint8_t { kWhole, kLoose };
Result<MetricSet> read_metrics(const std::string& path, Schema schema = Schema::kWhole);
Result<MetricSet> read_metrics_text(std::string_view json, const std::string& name, Schema schema = Schema::kWhole);

// The text of a file that Megatron-LM's comparators read: four blanks of indentation, Python's spelling of numbers;
// what is no finite number is the string "nan", "inf" or "-inf".
std::string metrics_text(const MetricSet& set);

// Through a temporary file beside it. Fails with kInfra.
Status write_metrics(const std::string& path, const MetricSet& set);

// Python's round(value, 5): the nearest multiple of 0.00001, ties of the exact binary value to even.
double round5(double value);

}  // namespace assay::train
