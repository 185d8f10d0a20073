// Writes torch_dist checkpoints from tensors given by functions; serves tests, benchmarks and tools/make_checkpoint.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/args_record.h"
#include "backends/model/checkpoint/dtype.h"
#include "backends/model/checkpoint/tiling.h"

namespace assay::model {

struct TensorToWrite {
  std::string key;
  std::vector<int64_t> shape;
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> chunk_counts;  // per axis, parts as equal as possible; empty: one chunk

  // Writes the elements [first, first + count) of the row-major tensor to `out`, as `dtype`. Called from several
  // threads; must depend on its arguments alone.
  std::function<void(int64_t first, int64_t count, void* out)> fill;
};

struct WriteOptions {
  int files = 1;                  // data files; chunks go round
  bool common_pt = false;         // arguments in common.pt; else in a common_state object
  int residue = -1;               // of every tensor's address modulo 64; -1: as the archives fall
  bool reversed_strides = false;  // chunks with the first axis innermost (what torch keeps of a transposed tensor)
  int64_t iteration = 1;          // -1: "release"
};

// The chunks of a grid with `counts` parts per axis; the first parts are longer by one where it does not divide.
std::vector<Box> chunk_grid(const std::vector<int64_t>& shape, const std::vector<int64_t>& counts);

// Writes `folder`/latest_checkpointed_iteration.txt and the iteration folder, creating directories and replacing files.
// Memory: a few MB a thread. Same input, same bytes. kInvalid on impossible input, kInfra when the disk refuses.
Status write_torch_dist(const std::string& folder, const std::vector<TensorToWrite>& tensors, const ArgRecord& args,
                        const WriteOptions& options = {});

}  // namespace assay::model
