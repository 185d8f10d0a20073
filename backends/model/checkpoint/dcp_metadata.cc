#include "backends/model/checkpoint/dcp_metadata.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <unordered_map>

namespace assay::model {
namespace {

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata.";

class Interpreter {
 public:
  Interpreter(const Pickle& pickle, const std::string& path) : pickle_(pickle), path_(path) {}

  Result<DcpMetadata> run();

 private:
  struct Place {
    std::vector<int64_t> offset;  // of the chunk; empty with `is_object`
    StoredRange range;
  };

  Status bad(std::string_view key, const std::string& what) const {
    return invalid(fmt::format("{}: '{}': {}; the file is damaged or of an unknown version", path_, key, what));
  }
  // Field of a dataclass: its state is a dict of fields.
  PickleId field(PickleId id, std::string_view name) const {
    return pickle_.is(id, PickleKind::kObject) ? pickle_.find(pickle_.state(id), name) : kNoPickle;
  }
  bool is_class(PickleId id, std::string_view name) const {
    return pickle_.is(id, PickleKind::kObject) && pickle_.class_name(id) == std::string(kModule) + std::string(name);
  }

  Status read_storage(PickleId storage);
  Status read_place(PickleId index, PickleId info);
  Status read_tensor(const std::string& key, PickleId id);
  Status read_dtype(const std::string& key, PickleId properties, std::string& dtype) const;
  Status read_object(const std::string& key);
  Status read_entry(PickleId key_id, PickleId id);
  const StoredRange* find_chunk(const std::string& key, const std::vector<int64_t>& offset) const;

  const Pickle& pickle_;
  const std::string& path_;
  DcpMetadata out_;
  std::unordered_map<std::string, std::map<std::vector<int64_t>, StoredRange>> tensor_places_;
  std::unordered_map<std::string, StoredRange> object_places_;
};

Status Interpreter::read_place(PickleId index, PickleId info) {
  const PickleId fqn = field(index, "fqn");
  if (!is_class(index, "MetadataIndex") || !pickle_.is(fqn, PickleKind::kString)) {
    return bad("storage_data", "a key that is no MetadataIndex");
  }
  const std::string key(pickle_.text(fqn));
  const PickleId path = field(info, "relative_path");
  const PickleId offset = field(info, "offset");
  const PickleId length = field(info, "length");
  if (!pickle_.is(path, PickleKind::kString) || !pickle_.is(offset, PickleKind::kInt) ||
      !pickle_.is(length, PickleKind::kInt) || pickle_.integer(offset) < 0 || pickle_.integer(length) < 0) {
    return bad(key, "its storage has no relative_path, offset and length");
  }
  const PickleId transforms = field(info, "transform_descriptors");
  if (transforms != kNoPickle && !pickle_.is(transforms, PickleKind::kNone) && !pickle_.items(transforms).empty()) {
    return unsupported(fmt::format("{}: '{}': its storage is transformed (compressed); save it without", path_, key));
  }
  StoredRange range{std::string(pickle_.text(path)), static_cast<uint64_t>(pickle_.integer(offset)),
                    static_cast<uint64_t>(pickle_.integer(length))};
  const PickleId chunk = field(index, "offset");
  if (chunk == kNoPickle || pickle_.is(chunk, PickleKind::kNone)) {
    object_places_[key] = std::move(range);
    return {};
  }
  std::vector<int64_t> offsets;
  if (!read_ints(pickle_, chunk, offsets)) return bad(key, "a chunk offset that is no torch.Size");
  tensor_places_[key][std::move(offsets)] = std::move(range);
  return {};
}

Status Interpreter::read_storage(PickleId storage) {
  if (!pickle_.is(storage, PickleKind::kDict)) return bad("storage_data", "expected a dict");
  const std::span<const PickleId> pairs = pickle_.items(storage);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (Status s = read_place(pairs[i], pairs[i + 1]); !s.ok()) return s;
  }
  return {};
}

const StoredRange* Interpreter::find_chunk(const std::string& key, const std::vector<int64_t>& offset) const {
  const auto tensor = tensor_places_.find(key);
  if (tensor != tensor_places_.end()) {
    const auto place = tensor->second.find(offset);
    if (place != tensor->second.end()) return &place->second;
  }
  return nullptr;
}

// TensorProperties pickles itself as (dtype, layout, requires_grad, memory format, pin_memory); older ones as a dict.
Status Interpreter::read_dtype(const std::string& key, PickleId properties, std::string& dtype) const {
  PickleId symbol = kNoPickle;
  if (pickle_.is(properties, PickleKind::kObject) && pickle_.state(properties) != kNoPickle) {
    const PickleId state = pickle_.state(properties);
    symbol = pickle_.find(state, "dtype");
    if (pickle_.is(state, PickleKind::kTuple) && !pickle_.items(state).empty()) symbol = pickle_.items(state)[0];
  }
  if (!pickle_.is(symbol, PickleKind::kGlobal) || pickle_.module(symbol) != "torch") {
    return bad(key, "its properties name no torch dtype");
  }
  dtype = pickle_.name(symbol);
  return {};
}

Status Interpreter::read_tensor(const std::string& key, PickleId id) {
  StoredTensor tensor;
  tensor.key = key;
  if (Status s = read_dtype(key, field(id, "properties"), tensor.dtype_name); !s.ok()) return s;
  if (!read_ints(pickle_, field(id, "size"), tensor.shape)) return bad(key, "its size is no torch.Size");
  const PickleId chunks = field(id, "chunks");
  if (!pickle_.is(chunks, PickleKind::kList)) return bad(key, "it has no list of chunks");
  for (PickleId chunk : pickle_.items(chunks)) {
    Box box;
    if (!read_ints(pickle_, field(chunk, "offsets"), box.offsets) ||
        !read_ints(pickle_, field(chunk, "sizes"), box.sizes)) {
      return bad(key, "a chunk without offsets and sizes");
    }
    if (const StoredRange* range = find_chunk(key, box.offsets); range != nullptr) {
      tensor.ranges.push_back(*range);
    } else {
      tensor.defect = fmt::format("{}: tensor '{}': chunk {} has no storage", path_, key, shape_text(box.offsets));
    }
    tensor.chunks.push_back(std::move(box));
  }
  if (Status s = check_tiling(key, tensor.shape, tensor.chunks); !s.ok()) tensor.defect = s.with(path_).message();
  out_.tensors.push_back(std::move(tensor));
  return {};
}

Status Interpreter::read_object(const std::string& key) {
  const auto place = object_places_.find(key);
  if (place == object_places_.end()) return bad(key, "the object has no storage");
  out_.objects.push_back({key, place->second});
  return {};
}

Status Interpreter::read_entry(PickleId key_id, PickleId id) {
  if (!pickle_.is(key_id, PickleKind::kString)) return bad("state_dict_metadata", "a key that is no text");
  const std::string key(pickle_.text(key_id));
  if (is_class(id, "TensorStorageMetadata")) return read_tensor(key, id);
  if (is_class(id, "BytesStorageMetadata")) return read_object(key);
  return bad(key,
             fmt::format("is a '{}'; expected TensorStorageMetadata or BytesStorageMetadata", pickle_.class_name(id)));
}

Result<DcpMetadata> Interpreter::run() {
  const PickleId root = pickle_.root();
  if (!is_class(root, "Metadata")) {
    return invalid(fmt::format("{}: holds a '{}'; expected {}Metadata", path_, pickle_.class_name(root), kModule));
  }
  if (Status s = read_storage(field(root, "storage_data")); !s.ok()) return s;
  const PickleId entries = field(root, "state_dict_metadata");
  if (!pickle_.is(entries, PickleKind::kDict)) return bad("state_dict_metadata", "expected a dict");
  const std::span<const PickleId> pairs = pickle_.items(entries);
  std::set<std::string_view> seen;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pickle_.is(pairs[i], PickleKind::kString) && !seen.insert(pickle_.text(pairs[i])).second) {
      return bad(pickle_.text(pairs[i]), "is listed twice");
    }
    if (Status s = read_entry(pairs[i], pairs[i + 1]); !s.ok()) return s;
  }
  return std::move(out_);
}

}  // namespace

bool read_ints(const Pickle& pickle, PickleId id, std::vector<int64_t>& out) {
  if (!pickle.is(id, PickleKind::kTuple) && !pickle.is(id, PickleKind::kList)) return false;
  for (PickleId item : pickle.items(id)) {
    if (!pickle.is(item, PickleKind::kInt)) return false;
    out.push_back(pickle.integer(item));
  }
  return true;
}

Result<DcpMetadata> interpret_metadata(const Pickle& pickle, const std::string& path) {
  return Interpreter(pickle, path).run();
}

}  // namespace assay::model
