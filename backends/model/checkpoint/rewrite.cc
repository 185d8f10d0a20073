#include "backends/model/checkpoint/rewrite.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/model/checkpoint/torch_dist_writer.h"

namespace assay::model {
namespace {

bool readable(const TensorInfo& tensor) { return tensor.dtype != Dtype::kOther && tensor.defect.empty(); }

// First failure of reads that run in the writer's threads.
class FirstFailure {
 public:
  void note(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (first_.ok()) first_ = status;
  }
  Status take() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  mutable std::mutex mutex_;
  Status first_;
};

// Elements [first, first + count) of the row-major tensor, taken as rows of the first axis that is not fixed by
// `leading`; a part of a row is read one axis deeper.
class RangeReader {
 public:
  RangeReader(const Checkpoint& checkpoint, const TensorInfo& tensor) : checkpoint_(checkpoint), tensor_(tensor) {}

  Status read(int64_t first, int64_t count, std::byte* out) { return read_at({}, first, count, out); }

 private:
  int64_t row_elements(size_t axis) const {
    int64_t product = 1;
    for (size_t i = axis + 1; i < tensor_.shape.size(); ++i) product *= tensor_.shape[i];
    return product;
  }

  Status read_at(const std::vector<int64_t>& leading, int64_t first, int64_t count, std::byte* out) {
    const size_t axis = leading.size();
    if (tensor_.shape.empty()) return checkpoint_.read(tensor_.key, {}, tensor_.dtype, out);
    const int64_t row = row_elements(axis);
    const size_t size = dtype_size(tensor_.dtype);
    while (count > 0) {
      const int64_t at = first / row;
      const int64_t into = first % row;
      const int64_t whole = into == 0 ? count / row : 0;
      int64_t done = whole * row;
      Status status;
      if (whole > 0) {
        status = checkpoint_.read(tensor_.key, leading, tensor_.dtype, out, {.begin = at, .end = at + whole});
      } else {
        done = std::min(count, row - into);
        std::vector<int64_t> deeper = leading;
        deeper.push_back(at);
        status = read_at(deeper, into, done, out);
      }
      if (!status.ok()) return status;
      first += done;
      count -= done;
      out += static_cast<size_t>(done) * size;
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  const TensorInfo& tensor_;
};

// Two parts along the first axis and three along the last one, or three of one; another grid where that is the
// tensor's own.
std::vector<int64_t> other_chunks(const TensorInfo& tensor) {
  std::vector<int64_t> counts(tensor.shape.size(), 1);
  if (counts.empty()) return counts;
  const auto set = [&](size_t axis, int64_t parts) {
    counts[axis] = std::clamp<int64_t>(parts, 1, std::max<int64_t>(tensor.shape[axis], 1));
  };
  set(counts.size() - 1, 3);
  if (counts.size() > 1) set(0, 2);
  int64_t parts = 1;
  for (const int64_t count : counts) parts *= count;
  if (parts == static_cast<int64_t>(tensor.chunks.size()) && parts > 1) {
    std::fill(counts.begin(), counts.end(), 1);
  }
  return counts;
}

}  // namespace

uint64_t rewritten_bytes(const Checkpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const TensorInfo& tensor : checkpoint.contents().tensors) bytes += readable(tensor) ? tensor.bytes() : 0;
  return bytes;
}

Status rewrite_checkpoint(const Checkpoint& checkpoint, const std::string& folder) {
  const Result<ArgRecord> args = checkpoint.args();
  if (!args) return args.status();
  const CheckpointContents& contents = checkpoint.contents();
  FirstFailure failure;
  std::vector<TensorToWrite> tensors;
  for (const TensorInfo& tensor : contents.tensors) {
    if (!readable(tensor)) continue;
    const auto fill = [&checkpoint, &tensor, &failure](int64_t first, int64_t count, void* out) {
      const Status read = RangeReader(checkpoint, tensor).read(first, count, static_cast<std::byte*>(out));
      if (!read.ok()) failure.note(read);
    };
    tensors.push_back({.key = tensor.key,
                       .shape = tensor.shape,
                       .dtype = tensor.dtype,
                       .chunk_counts = other_chunks(tensor),
                       .fill = fill});
  }
  const bool had_common = std::filesystem::exists(std::filesystem::path(contents.path) / "common.pt");
  WriteOptions options;
  options.files = contents.files.size() == 2 ? 3 : 2;
  options.common_pt = !had_common;
  options.iteration = contents.iteration < 0 ? 1 : contents.iteration + 1;
  const Status written = write_torch_dist(folder, tensors, *args, options);
  const Status read = failure.take();
  return read.ok() ? written : read;
}

}  // namespace assay::model
