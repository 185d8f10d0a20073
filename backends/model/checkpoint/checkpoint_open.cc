// From a folder to the list of its tensors: which iteration, which format, which files.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/dcp_metadata.h"

namespace assay::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";
constexpr size_t kMaxSmallFile = size_t{1} << 20;  // bytes; tracker and metadata.json hold a line

bool on_disk(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Text for a message: printable ASCII, at most 40 characters.
std::string excerpt(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 40)) out += c >= ' ' && c < 0x7f ? c : '?';
  return text.size() > 40 ? out + "..." : out;
}

Result<std::string> read_small(const std::string& path) {
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file.ok()) return file.status();
  const std::span<const std::byte> bytes = (*file)->bytes();
  if (bytes.size() > kMaxSmallFile) return invalid(fmt::format("{}: {} bytes; expected a line", path, bytes.size()));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// All of `text` as a non-negative number; -1 when it is none.
int64_t parse_iteration(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

int64_t iteration_of_folder(const fs::path& folder) {
  const fs::path name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  const std::string text = name.string();
  return text.starts_with("iter_") ? parse_iteration(std::string_view(text).substr(5)) : -1;
}

// The iteration folder of `folder`, and its number.
Status resolve_folder(const std::string& folder, std::string& path, int64_t& iteration) {
  const fs::path root(folder);
  std::error_code ignored;
  if (!fs::is_directory(root, ignored)) return not_found(fmt::format("{}: no such checkpoint folder", folder));
  if (!on_disk(root / kTracker)) {
    if (on_disk(root / ".metadata") || on_disk(root / "metadata.json")) {
      path = folder;
      iteration = iteration_of_folder(root);
      return {};
    }
    return not_found(
        fmt::format("{}: no {} in it, and it is no iteration folder (no metadata.json)", folder, kTracker));
  }
  const std::string tracker = (root / kTracker).string();
  Result<std::string> text = read_small(tracker);
  if (!text.ok()) return text.status();
  std::string_view line = *text;
  while (!line.empty() && std::string_view(" \t\r\n").find(line.back()) != std::string_view::npos)
    line.remove_suffix(1);
  while (!line.empty() && std::string_view(" \t\r\n").find(line.front()) != std::string_view::npos)
    line.remove_prefix(1);
  iteration = parse_iteration(line);
  if (iteration < 0 && line != "release") {
    return invalid(fmt::format("{}: holds '{}'; expected an iteration number or \"release\"", tracker, excerpt(line)));
  }
  const fs::path chosen = root / (iteration < 0 ? "release" : fmt::format("iter_{:07}", iteration));
  path = chosen.string();
  if (!fs::is_directory(chosen, ignored)) {
    return not_found(fmt::format("{}: no such folder, though {} names it", path, tracker));
  }
  return {};
}

Status check_format(const std::string& path) {
  const std::string file = (fs::path(path) / "metadata.json").string();
  if (!on_disk(file)) {
    return unsupported(
        fmt::format("{}: absent, so this is no distributed checkpoint; expected format torch_dist", file));
  }
  Result<std::string> text = read_small(file);
  if (!text.ok()) return text.status();
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("sharded_backend") || !json["sharded_backend"].is_string()) {
    return invalid(fmt::format("{}: not JSON with the text 'sharded_backend'", file));
  }
  const std::string backend = json["sharded_backend"].get<std::string>();
  if (backend != "torch_dist") {
    return unsupported(fmt::format("{}: format '{}'; expected torch_dist", file, excerpt(backend)));
  }
  const nlohmann::json version = json.value("sharded_backend_version", nlohmann::json(1));
  if (version != 1)
    return unsupported(fmt::format("{}: torch_dist version {}; expected 1", file, excerpt(version.dump())));
  return {};
}

// Neither the spelling of a storage path nor its symbolic links may lead out of `folder`.
Result<std::string> storage_path(const std::string& folder, const std::string& relative) {
  const fs::path path(relative);
  bool inside = !relative.empty() && relative.find('\0') == std::string::npos && path.is_relative();
  for (const fs::path& part : path) inside = inside && part != "..";
  const Status refused =
      invalid(fmt::format("{}/.metadata: storage path '{}' leaves the checkpoint folder", folder, excerpt(relative)));
  if (!inside) return refused;
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return infra(fmt::format("{}: {}", folder, error.message()));
  const fs::path target = fs::canonical(root / path, error);
  if (error) {
    return not_found(fmt::format("{}/{}: data file is missing ({})", folder, excerpt(relative), error.message()));
  }
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), target.begin(), target.end());
  if (end != root.end()) return refused;
  return (fs::path(folder) / path).string();
}

}  // namespace

Status Checkpoint::map_files(const DcpMetadata& metadata) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : metadata.tensors) {
    for (const StoredRange& range : tensor.ranges) names.insert(range.relative_path);
  }
  for (const StoredObject& object : metadata.objects) names.insert(object.range.relative_path);
  for (const std::string& name : names) {
    Result<std::string> path = storage_path(contents_.path, name);
    if (!path.ok()) return path.status();
    Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(*path);
    if (!file.ok()) return file.status();
    files_.push_back(*std::move(file));
    contents_.files.push_back(name);
  }
  return {};
}

Status Checkpoint::find_place(const std::string& key, const StoredRange& range, ItemPlace& place) const {
  const auto file = std::ranges::lower_bound(contents_.files, range.relative_path);
  place = {static_cast<uint32_t>(file - contents_.files.begin()), range.offset, range.length};
  const uint64_t size = files_[place.file]->bytes().size();
  if (range.offset > size || range.length > size - range.offset) {
    return invalid(fmt::format("{}: {} bytes, but '{}' lies at {} and has {}; the file is truncated",
                               files_[place.file]->path(), size, key, range.offset, range.length));
  }
  return {};
}

Status Checkpoint::load(const CheckpointOptions& options) {
  check_crc_ = options.check_crc;
  if (Status s = check_format(contents_.path); !s.ok()) return s;
  const std::string metadata_path = (fs::path(contents_.path) / ".metadata").string();
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(metadata_path);
  if (!file.ok()) return file.status();
  Result<Pickle> pickle = Pickle::read((*file)->bytes(), metadata_path, 0);
  if (!pickle.ok()) return pickle.status();
  Result<DcpMetadata> metadata = interpret_metadata(*pickle, metadata_path);
  if (!metadata.ok()) return metadata.status();
  if (Status s = map_files(*metadata); !s.ok()) return s;
  for (StoredTensor& stored : metadata->tensors) {
    TensorInfo& tensor = contents_.tensors.emplace_back();
    tensor.key = std::move(stored.key);
    tensor.shape = std::move(stored.shape);
    tensor.dtype = dtype_from_name(stored.dtype_name);
    tensor.torch_dtype = std::move(stored.dtype_name);
    tensor.chunks = std::move(stored.chunks);
    tensor.defect = std::move(stored.defect);
    tensor.places.resize(stored.ranges.size());
    for (size_t i = 0; i < stored.ranges.size(); ++i) {
      if (Status s = find_place(tensor.key, stored.ranges[i], tensor.places[i]); !s.ok()) return s;
    }
  }
  for (StoredObject& stored : metadata->objects) {
    ObjectInfo& object = contents_.objects.emplace_back();
    object.key = std::move(stored.key);
    if (Status s = find_place(object.key, stored.range, object.place); !s.ok()) return s;
  }
  std::ranges::sort(contents_.tensors, {}, &TensorInfo::key);
  std::ranges::sort(contents_.objects, {}, &ObjectInfo::key);
  size_t chunks = 0;
  for (const TensorInfo& tensor : contents_.tensors) {
    first_chunk_.push_back(chunks);
    chunks += tensor.chunks.size();
  }
  verified_ = std::vector<std::atomic<uint8_t>>(chunks);
  const std::string common = (fs::path(contents_.path) / "common.pt").string();
  if (on_disk(common)) {
    Result<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(common);
    if (!mapped.ok()) return mapped.status();
    common_ = *std::move(mapped);
  }
  return {};
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& folder, const CheckpointOptions& options) {
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
  CheckpointContents& contents = checkpoint->contents_;
  if (Status s = resolve_folder(folder, contents.path, contents.iteration); !s.ok()) return s;
  if (Status s = checkpoint->load(options); !s.ok()) return s;
  return checkpoint;
}

}  // namespace assay::model
