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
  bool simple = true;  // a simple value; else a tensor of the plugin "scalars"
};

// Points in the order of the file; a step may come twice.
struct ScalarTag {
  std::string name;
  std::vector<ScalarPoint> points;
  bool simple = false;  // the file has simple values of it, those that a restart took away included
};

struct EventFile {
  std::string path;
  std::vector<ScalarTag> tags;  // in the order in which they first appear
  // Empty where the file is whole. A torn record at its end is a note; after a corrupt one nothing is read, and
  // `corrupt` names file and byte.
  std::string torn;
  Status corrupt;
};

// Reads as TensorBoard does: a restart that the file tells of (a START event, or in files without a version a step
// that goes back) takes the points from its step on away. Fails as read_file does where the file cannot be read.
Result<EventFile> read_event_file(const std::string& path);

// The same of bytes; `path` names them.
EventFile read_events(std::string_view bytes, const std::string& path);

}  // namespace assay::train
