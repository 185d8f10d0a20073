// METRICS as PyYAML reads it (YAML 1.1), for judges that follow Python's reading.
#pragma once

#include "assay/compat.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {

CompatMetrics written_metrics(const YamlNode& node);

}  // namespace assay::discover
