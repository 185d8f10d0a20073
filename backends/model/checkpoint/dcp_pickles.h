// The pickles of a torch_dist checkpoint: of each archive, and of `.metadata`; internal to the writer.
#pragma once

#include <string>
#include <vector>

#include "backends/model/checkpoint/torch_dist_writer.h"

namespace assay::model {

// One chunk, its file and, once written, its place.
struct WrittenItem {
  const TensorToWrite* tensor = nullptr;  // null: the common state
  Box box;
  int file = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// "__<file>_0.distcp".
std::string data_file_name(int file);

// data.pkl of an archive that holds one tensor in storage "0".
std::string tensor_pickle(Dtype dtype, const std::vector<int64_t>& shape, bool reversed_strides);

// {'args': Namespace, 'checkpoint_version': 3.0, 'iteration': n} for common.pt; a list that holds it for an object.
std::string common_pickle(const ArgRecord& args, const WriteOptions& options);

// `.metadata`; the items of one tensor are neighbours.
std::string metadata_pickle(const std::vector<WrittenItem>& items);

}  // namespace assay::model
