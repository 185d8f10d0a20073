#include "backends/model/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/model/checkpoint/args_import.h"
#include "backends/model/checkpoint/blob_reader.h"
#include "backends/model/checkpoint/box_copy.h"
#include "backends/model/checkpoint/checkpoint_request.h"
#include "backends/model/checkpoint/convert.h"
#include "backends/model/checkpoint/crc32.h"

namespace assay::model {
namespace {

// Bytes between two passes over the same data: small enough for the second one to find them in the cache.
constexpr uint64_t kBlockBytes = uint64_t{256} << 10;

Status crc_failure(const std::string& name, uint32_t seen, uint32_t expected) {
  return invalid(fmt::format("{}: CRC-32 {:08x}, expected {:08x}; the data is damaged: copy the file again", name, seen,
                             expected));
}

}  // namespace

uint64_t TensorInfo::bytes() const { return static_cast<uint64_t>(elements()) * torch_dtype_size(torch_dtype); }

const TensorInfo* CheckpointContents::find(std::string_view key) const {
  const auto at = std::ranges::lower_bound(tensors, key, {}, &TensorInfo::key);
  return at != tensors.end() && at->key == key ? &*at : nullptr;
}

std::span<const std::byte> Checkpoint::bytes(const ItemPlace& place) const {
  return files_[place.file]->bytes().subspan(place.offset, place.length);
}

std::string Checkpoint::place_name(const std::string& key, const ItemPlace& place) const {
  return fmt::format("{}: '{}'", files_[place.file]->path(), key);
}

void Checkpoint::touched(uint64_t bytes) const {
  if (touched_.fetch_add(bytes, std::memory_order_relaxed) + bytes >= kDropBytes) drop_pages();
}

void Checkpoint::drop_pages() const {
  touched_.store(0, std::memory_order_relaxed);
  for (const auto& file : files_) file->drop_pages();
}

Status Checkpoint::check_crc(std::span<const std::byte> data, uint32_t expected, const std::string& name) const {
  uint32_t crc = 0;
  while (!data.empty()) {
    const std::span<const std::byte> block = data.first(std::min<size_t>(data.size(), kDropBytes / 16));
    crc = crc32(block, crc);
    data = data.subspan(block.size());
    touched(block.size());
  }
  return crc == expected ? Status() : crc_failure(name, crc, expected);
}

Result<TensorBlob> Checkpoint::open_chunk(const TensorInfo& tensor, size_t chunk) const {
  const ItemPlace& place = tensor.places[chunk];
  const std::string name = place_name(tensor.key, place);
  Result<TensorBlob> blob = read_tensor_blob(bytes(place), name, place.offset);
  if (blob.ok() && (blob->dtype_name != tensor.torch_dtype || blob->shape != tensor.chunks[chunk].sizes)) {
    return invalid(fmt::format("{}: byte {}: holds {} {}; .metadata says {} {}", name, place.offset, blob->dtype_name,
                               shape_text(blob->shape), tensor.torch_dtype, shape_text(tensor.chunks[chunk].sizes)));
  }
  return blob;
}

Status Checkpoint::check_once(const TensorBlob& blob, size_t chunk, const std::string& name) const {
  const std::scoped_lock lock(verifying_[chunk % verifying_.size()]);
  if (verified_[chunk].load(std::memory_order_acquire) != 0) return {};
  Status status = check_crc(blob.storage, blob.crc, name);
  if (status.ok()) verified_[chunk].store(1, std::memory_order_release);
  return status;
}

Status Checkpoint::copy_chunk(size_t chunk, const Request& request) const {
  const TensorInfo& tensor = *request.tensor;
  Result<TensorBlob> blob = open_chunk(tensor, chunk);
  if (!blob.ok()) return blob.status();
  BoxCopy copy;
  if (!plan_copy(tensor.chunks[chunk], blob->strides, request.wanted, copy)) return {};
  const size_t in_size = dtype_size(tensor.dtype);
  std::atomic<uint8_t>& verified = verified_[request.first_chunk + chunk];
  const bool check = check_crc_ && verified.load(std::memory_order_acquire) == 0;
  // A chunk that is copied whole has its CRC taken on the way; one that is cut is checked first, once.
  const bool fused = check && copy.counts.empty() && copy.src_step == 1 &&
                     static_cast<uint64_t>(copy.run) * in_size == blob->storage.size();
  const std::string name = place_name(tensor.key, tensor.places[chunk]);
  if (check && !fused) {
    if (Status s = check_once(*blob, request.first_chunk + chunk, name); !s.ok()) return s;
  }
  const uint32_t crc = copy_runs(*blob, copy, tensor.dtype, request, fused);
  if (fused && crc != blob->crc) return crc_failure(name, crc, blob->crc);
  if (fused) verified.store(1, std::memory_order_release);
  return {};
}

uint32_t Checkpoint::copy_runs(const TensorBlob& blob, const BoxCopy& copy, Dtype from, const Request& request,
                               bool with_crc) const {
  const size_t in_size = dtype_size(from);
  const size_t out_size = dtype_size(request.out);
  const std::byte* src = blob.storage.data() + blob.data_offset;
  const auto block = static_cast<int64_t>(kBlockBytes / in_size);
  std::vector<std::byte> gathered(copy.src_step == 1 ? 0 : static_cast<size_t>(std::min(block, copy.run)) * in_size);
  uint32_t crc = 0;
  uint64_t copied = 0;
  for_each_run(copy, [&](int64_t first, int64_t to) {
    for (int64_t i = 0; i < copy.run; i += block) {
      const auto count = static_cast<size_t>(std::min(block, copy.run - i));
      const std::byte* data = src + static_cast<size_t>(first + i * copy.src_step) * in_size;
      if (with_crc) crc = crc32({data, count * in_size}, crc);
      if (copy.src_step != 1) {
        const size_t step = static_cast<size_t>(copy.src_step) * in_size;
        for (size_t k = 0; k < count; ++k) std::memcpy(gathered.data() + k * in_size, data + k * step, in_size);
        data = gathered.data();
      }
      convert_elements(data, from, request.dst + static_cast<size_t>(to + i) * out_size, request.out, count);
      copied += count * in_size;
      if (copied >= kBlockBytes) touched(std::exchange(copied, 0));
    }
  });
  touched(copied);
  return crc;
}

Result<Checkpoint::Request> Checkpoint::request(std::string_view key, std::span<const int64_t> leading, Dtype out,
                                                void* dst, RowRange rows) const {
  const TensorInfo* tensor = contents_.find(key);
  if (tensor == nullptr) return not_found(fmt::format("{}: has no tensor '{}'", contents_.path, key));
  if (tensor->dtype == Dtype::kOther || out == Dtype::kOther) {
    return unsupported(fmt::format("{}: '{}' is {}; weights are read from and to float32, float16 and bfloat16",
                                   contents_.path, key, tensor->torch_dtype));
  }
  if (!tensor->defect.empty()) return invalid(tensor->defect);
  const std::vector<int64_t>& shape = tensor->shape;
  const size_t fixed = leading.size();
  const auto refused = [&](const std::string& what) {
    return invalid(fmt::format("{}: '{}' of shape {}: {}", contents_.path, key, shape_text(shape), what));
  };
  if (fixed > shape.size()) return refused(fmt::format("{} leading indices", fixed));
  const size_t index = static_cast<size_t>(tensor - contents_.tensors.data());
  Request request{
      tensor, {std::vector<int64_t>(shape.size(), 0), shape}, out, static_cast<std::byte*>(dst), first_chunk_[index]};
  for (size_t d = 0; d < fixed; ++d) {
    if (leading[d] < 0 || leading[d] >= shape[d]) return refused(fmt::format("no index {} on axis {}", leading[d], d));
    request.wanted.offsets[d] = leading[d];
    request.wanted.sizes[d] = 1;
  }
  if (rows.begin != 0 || rows.end >= 0) {
    if (fixed == shape.size()) return refused("rows of a single element");
    const int64_t end = rows.end < 0 ? shape[fixed] : rows.end;
    if (rows.begin < 0 || rows.begin > end || end > shape[fixed]) {
      return refused(fmt::format("no rows [{}, {}) on axis {}", rows.begin, end, fixed));
    }
    request.wanted.offsets[fixed] = rows.begin;
    request.wanted.sizes[fixed] = end - rows.begin;
  }
  return request;
}

Status Checkpoint::read(std::string_view key, std::span<const int64_t> leading, Dtype out, void* dst,
                        RowRange rows) const {
  Result<Request> wanted = request(key, leading, out, dst, rows);
  if (!wanted.ok()) return wanted.status();
  const TensorInfo& tensor = *wanted->tensor;
  for (size_t chunk = 0; chunk < tensor.chunks.size(); ++chunk) {
    if (!boxes_meet(tensor.chunks[chunk], wanted->wanted)) continue;
    if (Status s = copy_chunk(chunk, *wanted); !s.ok()) return s;
  }
  return {};
}

Result<ArgRecord> Checkpoint::args() const {
  std::string name;
  std::span<const std::byte> blob;
  uint64_t base = 0;
  if (common_ != nullptr) {
    name = common_->path();
    blob = common_->bytes();
  } else {
    const auto object = std::ranges::find_if(
        contents_.objects, [](const ObjectInfo& entry) { return entry.key.starts_with("common_state/shard_"); });
    if (object == contents_.objects.end()) return ArgRecord();
    name = place_name(object->key, object->place);
    blob = bytes(object->place);
    base = object->place.offset;
  }
  Result<Pickle> pickle = read_object_blob(blob, name, base);
  if (!pickle.ok()) return pickle.status();
  return import_args(*pickle, name);
}

Status Checkpoint::verify() const {
  for (const TensorInfo& tensor : contents_.tensors) {
    if (!tensor.defect.empty()) return invalid(tensor.defect);
    if (tensor.dtype == Dtype::kOther) continue;  // listed only
    for (size_t chunk = 0; chunk < tensor.chunks.size(); ++chunk) {
      Result<TensorBlob> blob = open_chunk(tensor, chunk);
      if (!blob.ok()) return blob.status();
      if (Status s = check_crc(blob->storage, blob->crc, place_name(tensor.key, tensor.places[chunk])); !s.ok()) {
        return s;
      }
    }
  }
  Result<ArgRecord> record = args();
  return record.ok() ? Status() : record.status();
}

}  // namespace assay::model
