// Looks one weight up under the several names and layouts that Megatron-LM has used.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "backends/model/weights/weight_map.h"

namespace assay::model {

// A dimension and what it follows from, e.g. {192, "hidden_size"}.
struct Dimension {
  int64_t size;
  std::string from;
};

// What is looked for. `names` are tried in order below `layer` (or as they stand where layer < 0); "{e}" in a name
// stands for the expert's index.
struct Wanted {
  std::vector<std::string> names;
  std::vector<Dimension> shape;  // (rows) or (rows, cols)
  int layer = -1;
  int expert = -1;
  bool padded_rows = false;  // the checkpoint may hold fewer or more rows
  bool gated = false;        // may be stored as two halves, NAME_w and NAME_v
};

// Not thread-safe. The first failure is kept, later look-ups then do nothing: check status() at the end.
class Finder {
 public:
  Finder(const CheckpointContents& contents, const ModelConfig& config) : contents_(contents), config_(config) {}

  WeightRef find(const Wanted& wanted);
  const Status& status() const { return status_; }
  std::vector<std::string> unused() const;

 private:
  struct Layout {  // one way to store a tensor
    std::string key;
    std::vector<int64_t> leading;
    std::vector<Dimension> axes;  // of the leading indices
  };
  std::vector<Layout> layouts(const Wanted& wanted, const std::string& name) const;
  bool take(const Wanted& wanted, const std::string& suffix, const std::vector<Dimension>& shape, WeightRef& weight,
            std::vector<std::string>& tried);
  void fail_missing(const std::vector<std::string>& tried);
  void check(const TensorInfo& tensor, const Layout& layout, const Wanted& wanted, const std::vector<Dimension>& shape);

  const CheckpointContents& contents_;
  const ModelConfig& config_;
  std::set<std::string, std::less<>> used_;
  Status status_;
};

}  // namespace assay::model
