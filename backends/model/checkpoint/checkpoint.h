// A Megatron-LM torch_dist checkpoint, memory-mapped and read-only.
//
//   auto checkpoint = Checkpoint::open("ckpt");                  // folder with latest_checkpointed_iteration.txt
//   const TensorInfo* w = (*checkpoint)->contents().find("decoder.layers.mlp.router.weight");  // [L, E, h]
//   std::vector<float> layer3(w->elements() / w->shape[0]);
//   Status s = (*checkpoint)->read(w->key, std::array<int64_t, 1>{3}, Dtype::kFloat32, layer3.data());
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "backends/model/args_record.h"
#include "backends/model/checkpoint/dtype.h"
#include "backends/model/checkpoint/mapped_file.h"
#include "backends/model/checkpoint/tiling.h"

namespace assay::model {

struct BoxCopy;      // box_copy.h
struct DcpMetadata;  // dcp_metadata.h
struct StoredRange;  // dcp_metadata.h
struct TensorBlob;   // blob_reader.h

// One item: `length` bytes from `offset` of CheckpointContents::files[file].
struct ItemPlace {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct TensorInfo {
  std::string key;
  std::vector<int64_t> shape;
  Dtype dtype = Dtype::kOther;    // kOther: listed, but cannot be read
  std::string torch_dtype;        // "bfloat16", "float8_e4m3fn", ...
  std::vector<Box> chunks;        // tile the tensor exactly, unless there is a defect
  std::vector<ItemPlace> places;  // one per chunk
  std::string defect;             // one line: why the stored chunks cannot be read; empty: they can

  int64_t elements() const { return std::max<int64_t>(element_count(shape), 0); }
  uint64_t bytes() const;  // of the elements; 0 when the size of torch_dtype is not known
};

// A bytes item: _extra_state, common_state, ... Not interpreted, apart from the arguments.
struct ObjectInfo {
  std::string key;
  ItemPlace place;
};

struct CheckpointContents {
  std::string path;                 // of the iteration folder
  int64_t iteration = -1;           // -1: a "release" checkpoint, or a folder whose name is no iteration
  std::vector<std::string> files;   // data files, relative to `path`, sorted
  std::vector<TensorInfo> tensors;  // sorted by key
  std::vector<ObjectInfo> objects;  // sorted by key

  const TensorInfo* find(std::string_view key) const;  // nullptr: no such tensor
};

// Half-open range along the first axis that is not fixed; end < 0: to its end.
struct RowRange {
  int64_t begin = 0;
  int64_t end = -1;
};

struct CheckpointOptions {
  bool check_crc = true;  // false: bit flips in tensor data go unnoticed
};

// Thread-safe: every method may run beside every other. The files must not change while it lives. Opening reads
// metadata.json and .metadata and maps the data files; tensor data is touched by read() and verify() alone.
class Checkpoint {
 public:
  // `folder` holds latest_checkpointed_iteration.txt, or is an iteration folder itself. Fails with kNotFound (folder,
  // iteration or data file missing), kUnsupported (another format), kInvalid (damaged or truncated, a storage
  // path that leaves the folder); each message names the file. Chunks that do not tile their tensor are its `defect`.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& folder, const CheckpointOptions& options = {});

  const CheckpointContents& contents() const { return contents_; }

  // Copies the sub-tensor at the fixed `leading` indices (layer, expert, ...; none: the whole tensor) to `dst`,
  // contiguous and row-major, as `out`; `dst` holds the product of the remaining dimensions (the first of them cut to
  // `rows`) and is aligned for `out`. Rounding: convert.h. Fails, naming key and file: no such tensor (kNotFound), a
  // dtype that is no weight (kUnsupported), a defect, an index out of range, data that disagrees with its metadata or
  // CRC (kInvalid); then `dst` holds anything.
  Status read(std::string_view key, std::span<const int64_t> leading, Dtype out, void* dst, RowRange rows = {}) const;

  // The arguments of the training run, from common.pt, else from the common_state object; an empty
  // record when the checkpoint has neither or no 'args' in it. kInvalid when damaged.
  Result<ArgRecord> args() const;

  // Reads everything once: every tensor's and object's archive against its metadata and CRC. First failure.
  Status verify() const;

  // Gives the mapped pages back. read() and verify() do so themselves every kDropBytes, so that resident memory stays
  // near that of the copies.
  void drop_pages() const;

  static constexpr uint64_t kDropBytes = uint64_t{64} << 20;

 private:
  friend class CheckpointStream;
  struct Request;  // checkpoint_request.h

  Checkpoint() = default;
  Result<Request> request(std::string_view key, std::span<const int64_t> leading, Dtype out, void* dst,
                          RowRange rows) const;
  Status load(const CheckpointOptions& options);  // checkpoint_open.cc
  Status map_files(const DcpMetadata& metadata);  // checkpoint_open.cc
  Status find_place(const std::string& key, const StoredRange& range, ItemPlace& place) const;
  Result<TensorBlob> open_chunk(const TensorInfo& tensor, size_t chunk) const;
  Status copy_chunk(size_t chunk, const Request& request) const;
  uint32_t copy_runs(const TensorBlob& blob, const BoxCopy& copy, Dtype from, const Request& request,
                     bool with_crc) const;
  Status check_once(const TensorBlob& blob, size_t chunk, const std::string& name) const;
  Status check_crc(std::span<const std::byte> data, uint32_t expected, const std::string& name) const;
  std::span<const std::byte> bytes(const ItemPlace& place) const;
  std::string place_name(const std::string& key, const ItemPlace& place) const;
  void touched(uint64_t bytes) const;

  CheckpointContents contents_;
  std::vector<std::shared_ptr<const MappedFile>> files_;  // as contents_.files
  std::shared_ptr<const MappedFile> common_;              // common.pt; null when absent
  bool check_crc_ = true;
  std::vector<size_t> first_chunk_;                     // per tensor: index of its chunk 0 in verified_
  mutable std::vector<std::atomic<uint8_t>> verified_;  // per chunk: 1 once its CRC was right
  mutable std::array<std::mutex, 64> verifying_;        // by chunk: one thread checks, others wait
  mutable std::atomic<uint64_t> touched_ = 0;           // bytes since the pages were dropped
};

}  // namespace assay::model
