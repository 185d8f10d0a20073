// The `.metadata` file of torch.distributed.checkpoint as plain data.
#pragma once

#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/checkpoint/pickle_reader.h"
#include "backends/model/checkpoint/tiling.h"

namespace assay::model {

// Where one item lies: [offset, offset + length) of a file; bytes.
struct StoredRange {
  std::string relative_path;
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct StoredTensor {
  std::string key;
  std::string dtype_name;  // torch's spelling without "torch."
  std::vector<int64_t> shape;
  std::vector<Box> chunks;          // tile the tensor exactly, unless there is a defect
  std::vector<StoredRange> ranges;  // one per chunk, unless there is a defect
  std::string defect;               // why the tensor cannot be read (a gap, an overlap, a chunk without storage)
};

struct StoredObject {
  std::string key;
  StoredRange range;
};

// Both in the order of the file.
struct DcpMetadata {
  std::vector<StoredTensor> tensors;
  std::vector<StoredObject> objects;
};

// Interprets a pickled Metadata. Fails naming `path` and the key: a field is missing or of another type, a key is
// listed twice, storage is transformed (compressed). What is wrong with the chunks of one tensor is its `defect`: an
// optimizer state that nobody reads must not spoil the weights.
Result<DcpMetadata> interpret_metadata(const Pickle& pickle, const std::string& path);

// Ints of a tuple or list (torch.Size); false when it holds anything else.
bool read_ints(const Pickle& pickle, PickleId id, std::vector<int64_t>& out);

}  // namespace assay::model
