// The scalars of one TensorBoard event file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::train {

struct ScalarPoint {
  int64_t step = 0;
  double value = 0;
};

// Points in the order of the file; a step may come twice.
struct ScalarTag {
  std::string name;
  std::vector<ScalarPoint> points;
};

struct EventFile {
  std::string path;
  std::vector<ScalarTag> tags;  // in the order in which they first appear
  // Empty where the file is whole. A torn record at its end is a note; after a corrupt one nothing is read, and
  // `corrupt` names file and byte.
  std::string torn;
  Status corrupt;
};

// Which forms of a scalar are read: TensorBoard's own EventAccumulator lists simple values alone, tensors of its plugin
// "scalars" elsewhere.
enum class ScalarForms : uint8_t { kSimple, kAll };

// Reads as TensorBoard does: a restart that the file tells of (a START event, or in files without a version a step
// that goes back) takes the points from its step on away. Fails with kNotFound or kInfra where the file cannot be read.
Result<EventFile> read_event_file(const std::string& path, ScalarForms forms);

// The same of bytes; `path` names them.
EventFile read_events(std::string_view bytes, const std::string& path, ScalarForms forms);

}  // namespace assay::train
