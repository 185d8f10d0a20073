#include "backends/model/checkpoint/checkpoint_stream.h"

#include <algorithm>

#include "backends/model/checkpoint/blob_reader.h"
#include "backends/model/checkpoint/box_copy.h"
#include "backends/model/checkpoint/checkpoint_request.h"
#include "backends/model/checkpoint/convert.h"
#include "backends/model/checkpoint/crc32.h"

namespace assay::model {
namespace {

// Read at a time: stays in a core's cache until its CRC is taken.
constexpr int64_t kStreamBytes = int64_t{512} << 10;

// Whether the runs of the copy follow one another in the source without a gap.
bool consecutive(const BoxCopy& copy) {
  if (copy.src_step != 1) return false;
  int64_t behind = copy.run;
  for (size_t d = copy.counts.size(); d-- > 0;) {
    if (copy.src_strides[d] != behind) return false;
    behind *= copy.counts[d];
  }
  return true;
}

int64_t elements_of(const BoxCopy& copy) {
  int64_t count = copy.run;
  for (const int64_t loops : copy.counts) count *= loops;
  return count;
}

// First destination element of run `index`.
int64_t destination(const BoxCopy& copy, int64_t index) {
  int64_t at = copy.dst_first;
  for (size_t d = copy.counts.size(); d-- > 0; index /= copy.counts[d]) {
    at += index % copy.counts[d] * copy.dst_strides[d];
  }
  return at;
}

}  // namespace

// What one read takes of one chunk: consecutive in the file.
struct CheckpointStream::Part {
  const TensorBlob& blob;
  const BoxCopy& copy;
  const Checkpoint::Request& request;
  size_t chunk;  // of the tensor
  const MappedFile& file;

  size_t in_size() const { return dtype_size(request.tensor->dtype); }
  uint64_t begin() const { return blob.data_offset + static_cast<uint64_t>(copy.src_first) * in_size(); }  // in storage
  uint64_t bytes() const { return static_cast<uint64_t>(elements_of(copy)) * in_size(); }
};

CheckpointStream::CheckpointStream(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), progress_(checkpoint.verified_.size()) {}

Status CheckpointStream::read(Reader& reader, std::string_view key, std::span<const int64_t> leading, Dtype out,
                              void* dst, RowRange rows) {
  Result<Checkpoint::Request> request = checkpoint_.request(key, leading, out, dst, rows);
  if (!request.ok()) return request.status();
  const std::vector<Box>& chunks = request->tensor->chunks;
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (!boxes_meet(chunks[chunk], request->wanted)) continue;
    if (Status s = read_chunk(reader, chunk, *request); !s.ok()) return s;
  }
  return {};
}

Status CheckpointStream::read_chunk(Reader& reader, size_t chunk, const Checkpoint::Request& request) {
  const TensorInfo& tensor = *request.tensor;
  Result<TensorBlob> blob = checkpoint_.open_chunk(tensor, chunk);
  if (!blob.ok()) return blob.status();
  BoxCopy copy;
  if (!plan_copy(tensor.chunks[chunk], blob->strides, request.wanted, copy)) return {};
  if (!consecutive(copy)) return checkpoint_.copy_chunk(chunk, request);
  const bool check =
      checkpoint_.check_crc_ && checkpoint_.verified_[request.first_chunk + chunk].load(std::memory_order_acquire) == 0;
  const Part part{*blob, copy, request, chunk, *checkpoint_.files_[tensor.places[chunk].file]};
  Result<uint32_t> crc = read_part(reader, part, check);
  if (!crc.ok()) return crc.status();
  return check ? note(part, *crc) : Status();
}

// The CRC of the part's bytes; 0 where it is not asked for.
Result<uint32_t> CheckpointStream::read_part(Reader& reader, const Part& part, bool with_crc) const {
  const Dtype from = part.request.tensor->dtype;
  const Dtype to = part.request.out;
  const BoxCopy& copy = part.copy;
  const auto in_size = static_cast<int64_t>(part.in_size());
  const auto out_size = static_cast<int64_t>(dtype_size(to));
  const bool direct = from == to && copy.counts.empty();
  if (!direct) reader.block.resize(static_cast<size_t>(kStreamBytes));
  uint64_t at = static_cast<uint64_t>(part.blob.storage.data() - part.file.bytes().data()) + part.begin();
  uint32_t crc = 0;
  const int64_t elements = elements_of(copy);
  for (int64_t first = 0; first < elements;) {
    const int64_t count = std::min(kStreamBytes / in_size, elements - first);
    std::byte* block = direct ? part.request.dst + (copy.dst_first + first) * out_size : reader.block.data();
    const std::span<std::byte> bytes(block, static_cast<size_t>(count * in_size));
    if (Status s = reader.file.read(part.file, at, bytes); !s.ok()) return s;
    if (with_crc) crc = crc32(bytes, crc);
    for (int64_t i = 0; !direct && i < count;) {
      const int64_t within = (first + i) % copy.run;
      const int64_t some = std::min(copy.run - within, count - i);
      std::byte* dst = part.request.dst + (destination(copy, (first + i) / copy.run) + within) * out_size;
      convert_elements(block + i * in_size, from, dst, to, static_cast<size_t>(some));
      i += some;
    }
    at += bytes.size();
    first += count;
  }
  return crc;
}

Status CheckpointStream::note(const Part& part, uint32_t crc) {
  const size_t index = part.request.first_chunk + part.chunk;
  const uint64_t size = part.blob.storage.size();
  Progress& progress = progress_[index];
  progress.crc.fetch_xor(crc32_before(crc, size - part.begin() - part.bytes()), std::memory_order_acq_rel);
  const uint64_t bytes = progress.bytes.fetch_add(part.bytes(), std::memory_order_acq_rel) + part.bytes();
  if (bytes != size) return {};
  if (progress.crc.load(std::memory_order_acquire) == part.blob.crc) {
    checkpoint_.verified_[index].store(1, std::memory_order_release);
    return {};
  }
  // Damaged, or parts were read twice in place of others: the whole chunk tells.
  const TensorInfo& tensor = *part.request.tensor;
  return checkpoint_.check_once(part.blob, index, checkpoint_.place_name(tensor.key, tensor.places[part.chunk]));
}

Status CheckpointStream::finish() {
  size_t index = 0;
  for (const TensorInfo& tensor : checkpoint_.contents().tensors) {
    for (size_t chunk = 0; chunk < tensor.chunks.size(); ++chunk, ++index) {
      if (progress_[index].bytes == 0 || checkpoint_.verified_[index] != 0) continue;
      const Result<TensorBlob> blob = checkpoint_.open_chunk(tensor, chunk);
      if (!blob.ok()) return blob.status();
      const std::string name = checkpoint_.place_name(tensor.key, tensor.places[chunk]);
      if (Status s = checkpoint_.check_once(*blob, index, name); !s.ok()) return s;
    }
  }
  return {};
}

}  // namespace assay::model
