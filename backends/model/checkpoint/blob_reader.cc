#include "backends/model/checkpoint/blob_reader.h"

#include <fmt/format.h>

#include "backends/model/checkpoint/crc32.h"
#include "backends/model/checkpoint/dcp_metadata.h"
#include "backends/model/checkpoint/dtype.h"
#include "backends/model/checkpoint/zip_reader.h"

namespace assay::model {
namespace {

class Blob {
 public:
  Blob(std::span<const std::byte> data, const std::string& name, uint64_t base)
      : data_(data), name_(name), base_(base) {}

  // Directory, byte order and data.pkl.
  Status open();
  Result<Pickle> pickle() const { return Pickle::read(bytes(*pickle_member_), name_, base_ + pickle_member_->offset); }
  Result<TensorBlob> tensor(const Pickle& pickle) const;

 private:
  Status bad(const std::string& what) const {
    return invalid(fmt::format("{}: byte {}: {}; the file is damaged", name_, base_, what));
  }
  std::span<const std::byte> bytes(const ZipMember& member) const { return data_.subspan(member.offset, member.size); }
  const ZipMember* member(std::string_view path) const;
  Status check_order() const;
  Status storage(const Pickle& pickle, PickleId id, TensorBlob& out) const;
  Status place(const Pickle& pickle, std::span<const PickleId> args, TensorBlob& out) const;

  std::span<const std::byte> data_;
  const std::string& name_;
  uint64_t base_;
  std::vector<ZipMember> members_;
  const ZipMember* pickle_member_ = nullptr;
  std::string_view root_;  // folder inside the archive, with its slash
};

const ZipMember* Blob::member(std::string_view path) const {
  for (const ZipMember& entry : members_) {
    if (entry.name.size() == root_.size() + path.size() && entry.name.starts_with(root_) &&
        entry.name.ends_with(path)) {
      return &entry;
    }
  }
  return nullptr;
}

Status Blob::open() {
  Result<std::vector<ZipMember>> members = read_zip_directory(data_, name_, base_);
  if (!members.ok()) return members.status();
  members_ = *std::move(members);
  constexpr std::string_view kPickle = "data.pkl";
  for (const ZipMember& entry : members_) {
    const std::string_view folder = entry.name.substr(0, entry.name.find('/') + 1);
    if (entry.name.substr(folder.size()) == kPickle) {
      pickle_member_ = &entry;
      root_ = folder;
    }
  }
  if (pickle_member_ == nullptr) return bad("the archive has no data.pkl");
  if (crc32(bytes(*pickle_member_)) != pickle_member_->crc) return bad("data.pkl does not have its CRC-32");
  return check_order();
}

Status Blob::check_order() const {
  const ZipMember* order = member("byteorder");
  if (order == nullptr) return {};  // archives before torch 2.1: little endian
  const std::span<const std::byte> text = bytes(*order);
  const std::string_view seen(reinterpret_cast<const char*>(text.data()), text.size());
  if (seen == "little") return {};
  if (seen == "big") return unsupported(fmt::format("{}: its tensors are big endian; expected little", name_));
  return bad("the member 'byteorder' says neither little nor big");
}

// Persistent id of a storage: ("storage", class, member, device, element count).
Status Blob::storage(const Pickle& pickle, PickleId id, TensorBlob& out) const {
  const std::span<const PickleId> parts =
      pickle.is(id, PickleKind::kPersistent) ? pickle.items(pickle.callee(id)) : std::span<const PickleId>();
  if (parts.size() < 5 || !pickle.is(parts[0], PickleKind::kString) || pickle.text(parts[0]) != "storage" ||
      !pickle.is(parts[1], PickleKind::kGlobal) || !pickle.is(parts[2], PickleKind::kString) ||
      !pickle.is(parts[4], PickleKind::kInt)) {
    return bad("the tensor refers to no storage");
  }
  out.dtype_name = dtype_of_storage_class(pickle.name(parts[1]));
  if (out.dtype_name.empty()) {
    return unsupported(fmt::format("{}: a storage of class '{}'", name_, pickle.class_name(parts[1])));
  }
  const ZipMember* data = member("data/" + std::string(pickle.text(parts[2])));
  if (data == nullptr) return bad(fmt::format("the archive has no storage 'data/{}'", pickle.text(parts[2])));
  const int64_t count = pickle.integer(parts[4]);
  if (count < 0 || static_cast<uint64_t>(count) != data->size / torch_dtype_size(out.dtype_name) ||
      data->size % torch_dtype_size(out.dtype_name) != 0) {
    return bad(fmt::format("the storage has {} bytes; expected {} elements of {}", data->size, count, out.dtype_name));
  }
  out.storage = bytes(*data);
  out.crc = data->crc;
  return {};
}

// Arguments of _rebuild_tensor_v2: storage, storage offset, size, stride, requires_grad, hooks[, metadata].
Status Blob::place(const Pickle& pickle, std::span<const PickleId> args, TensorBlob& out) const {
  if (args.size() < 4 || !pickle.is(args[1], PickleKind::kInt) || !read_ints(pickle, args[2], out.shape) ||
      !read_ints(pickle, args[3], out.strides) || out.strides.size() != out.shape.size()) {
    return bad("the tensor has no offset, size and stride");
  }
  if (Status s = storage(pickle, args[0], out); !s.ok()) return s;
  const int64_t count = element_count(out.shape);
  if (count < 0) return bad(fmt::format("the tensor's shape {} is impossible", shape_text(out.shape)));
  const auto size = static_cast<int64_t>(torch_dtype_size(out.dtype_name));
  const int64_t available = static_cast<int64_t>(out.storage.size()) / size;
  int64_t last = pickle.integer(args[1]);  // index of the last element in the storage
  bool fits = last >= 0 && last <= available;
  for (size_t d = 0; fits && count > 0 && d < out.shape.size(); ++d) {
    int64_t reach = 0;
    fits = out.strides[d] >= 0 && !__builtin_mul_overflow(out.shape[d] - 1, out.strides[d], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || (count > 0 && last >= available)) {
    return bad(fmt::format("a tensor of shape {} with strides {} from element {} exceeds its storage of {} elements",
                           shape_text(out.shape), shape_text(out.strides), pickle.integer(args[1]), available));
  }
  out.data_offset = static_cast<uint64_t>(pickle.integer(args[1]) * size);
  return {};
}

Result<TensorBlob> Blob::tensor(const Pickle& pickle) const {
  PickleId id = pickle.root();
  if (pickle.class_name(id) == "torch._utils._rebuild_parameter") {
    const std::span<const PickleId> args = pickle.items(pickle.arguments(id));
    if (args.empty()) return bad("a parameter without a tensor");
    id = args[0];
  }
  if (!pickle.is(id, PickleKind::kObject) || pickle.class_name(id) != "torch._utils._rebuild_tensor_v2") {
    return unsupported(fmt::format("{}: byte {}: holds a '{}'; expected a torch tensor (_rebuild_tensor_v2)", name_,
                                   base_, pickle.class_name(id)));
  }
  TensorBlob out;
  if (Status s = place(pickle, pickle.items(pickle.arguments(id)), out); !s.ok()) return s;
  return out;
}

}  // namespace

Result<TensorBlob> read_tensor_blob(std::span<const std::byte> blob, const std::string& name, uint64_t base) {
  Blob archive(blob, name, base);
  if (Status s = archive.open(); !s.ok()) return s;
  Result<Pickle> pickle = archive.pickle();
  if (!pickle.ok()) return pickle.status();
  return archive.tensor(*pickle);
}

Result<Pickle> read_object_blob(std::span<const std::byte> blob, const std::string& name, uint64_t base) {
  Blob archive(blob, name, base);
  if (Status s = archive.open(); !s.ok()) return s;
  return archive.pickle();
}

}  // namespace assay::model
