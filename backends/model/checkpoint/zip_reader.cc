#include "backends/model/checkpoint/zip_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace assay::model {
namespace {

// Record signatures and fixed sizes of the .ZIP file format specification (PKWARE APPNOTE 4.3, 4.5.3).
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr size_t kLocalSize = 30;
constexpr size_t kCentralSize = 46;
constexpr size_t kEndSize = 22;
constexpr size_t kEnd64Size = 56;
constexpr size_t kLocator64Size = 20;
constexpr size_t kMaxComment = 0xffff;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kIn64 = 0xffffffffU;

class Archive {
 public:
  Archive(std::span<const std::byte> data, const std::string& name, uint64_t base)
      : data_(data), name_(name), base_(base) {}

  Result<std::vector<ZipMember>> members();

 private:
  struct Directory {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t count = 0;
    uint64_t end = 0;  // where the end records begin
  };

  template <class T>
  T get(uint64_t offset) const {
    T value{};
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return value;
  }
  bool inside(uint64_t offset, uint64_t size) const { return offset <= data_.size() && size <= data_.size() - offset; }
  std::string_view text(uint64_t offset, size_t size) const {
    return {reinterpret_cast<const char*>(data_.data()) + offset, size};
  }
  Status damaged(uint64_t offset, const std::string& what) const {
    return invalid(fmt::format("{}: byte {}: {}; the file is damaged or truncated", name_, base_ + offset, what));
  }

  std::optional<uint64_t> find_end() const;
  Result<Directory> directory() const;
  Status apply_zip64(std::string_view extra, uint64_t at, ZipMember& member, uint64_t& packed, uint64_t& header) const;
  Status locate(uint64_t at, uint64_t header, ZipMember& member) const;

  std::span<const std::byte> data_;
  const std::string& name_;
  uint64_t base_;
};

std::optional<uint64_t> Archive::find_end() const {
  if (data_.size() < kEndSize) return std::nullopt;
  const uint64_t last = data_.size() - kEndSize;
  const uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (get<uint32_t>(at) == kEndSignature && get<uint16_t>(at + 20) == data_.size() - at - kEndSize) return at;
  }
  return std::nullopt;
}

Result<Archive::Directory> Archive::directory() const {
  const std::optional<uint64_t> end = find_end();
  if (!end) return damaged(data_.size(), "no end of a zip directory");
  if (get<uint16_t>(*end + 4) != 0 && get<uint16_t>(*end + 4) != 0xffff) {
    return unsupported(fmt::format("{}: byte {}: a zip archive in several parts", name_, base_ + *end));
  }
  Directory dir{get<uint32_t>(*end + 16), get<uint32_t>(*end + 12), get<uint16_t>(*end + 10), *end};
  if (*end >= kLocator64Size && get<uint32_t>(*end - kLocator64Size) == kLocator64Signature) {
    const uint64_t end64 = get<uint64_t>(*end - kLocator64Size + 8);
    if (!inside(end64, kEnd64Size) || end64 + kEnd64Size > *end || get<uint32_t>(end64) != kEnd64Signature) {
      return damaged(*end - kLocator64Size, "the zip64 locator points at no zip64 record");
    }
    dir = {get<uint64_t>(end64 + 48), get<uint64_t>(end64 + 40), get<uint64_t>(end64 + 32), end64};
  }
  if (!inside(dir.offset, dir.size) || dir.offset + dir.size > dir.end) {
    return damaged(*end, "the zip directory lies outside the archive");
  }
  if (dir.count > dir.size / kCentralSize) return damaged(*end, "the zip directory counts more members than fit");
  return dir;
}

Status Archive::apply_zip64(std::string_view extra, uint64_t at, ZipMember& member, uint64_t& packed,
                            uint64_t& header) const {
  if (member.size != kIn64 && packed != kIn64 && header != kIn64) return {};
  while (extra.size() >= 4) {
    uint16_t id = 0;
    uint16_t size = 0;
    std::memcpy(&id, extra.data(), 2);
    std::memcpy(&size, extra.data() + 2, 2);
    extra.remove_prefix(4);
    if (size > extra.size()) break;
    if (id == kZip64Extra) {
      std::string_view field = extra.substr(0, size);
      for (uint64_t* value : {&member.size, &packed, &header}) {
        if (*value != kIn64) continue;
        if (field.size() < 8) return damaged(at, "a zip64 field that is too short");
        std::memcpy(value, field.data(), 8);
        field.remove_prefix(8);
      }
      return {};
    }
    extra.remove_prefix(size);
  }
  return {};  // no zip64 field: the values are what they are
}

// The local header repeats the name; its sizes may be absent (data descriptor), so only its length is used.
Status Archive::locate(uint64_t at, uint64_t header, ZipMember& member) const {
  if (!inside(header, kLocalSize) || get<uint32_t>(header) != kLocalSignature) {
    return damaged(at, fmt::format("member '{}' has no local header", member.name));
  }
  const uint16_t name_size = get<uint16_t>(header + 26);
  member.offset = header + kLocalSize + name_size + get<uint16_t>(header + 28);
  if (!inside(header + kLocalSize, name_size) || text(header + kLocalSize, name_size) != member.name) {
    return damaged(header, fmt::format("the local header of member '{}' has another name", member.name));
  }
  if (!inside(member.offset, member.size)) {
    return damaged(at, fmt::format("member '{}' of {} bytes does not fit into the archive", member.name, member.size));
  }
  return {};
}

Result<std::vector<ZipMember>> Archive::members() {
  Result<Directory> dir = directory();
  if (!dir.ok()) return dir.status();
  std::vector<ZipMember> members;
  members.reserve(dir->count);
  uint64_t at = dir->offset;
  const uint64_t end = dir->offset + dir->size;
  for (uint64_t i = 0; i < dir->count; ++i) {
    if (end - at < kCentralSize || get<uint32_t>(at) != kCentralSignature) {
      return damaged(at, fmt::format("zip directory entry {} is missing", i));
    }
    const uint16_t flags = get<uint16_t>(at + 8);
    const uint16_t method = get<uint16_t>(at + 10);
    const uint16_t name_size = get<uint16_t>(at + 28);
    const uint16_t extra_size = get<uint16_t>(at + 30);
    const uint64_t entry_size = kCentralSize + name_size + extra_size + get<uint16_t>(at + 32);
    if (entry_size > end - at) return damaged(at, fmt::format("zip directory entry {} is cut off", i));
    ZipMember member{text(at + kCentralSize, name_size), 0, get<uint32_t>(at + 24), get<uint32_t>(at + 16)};
    uint64_t packed = get<uint32_t>(at + 20);
    uint64_t header = get<uint32_t>(at + 42);
    const std::string_view extra = text(at + kCentralSize + name_size, extra_size);
    if (Status s = apply_zip64(extra, at, member, packed, header); !s.ok()) return s;
    if ((flags & 1U) != 0 || method != 0 || packed != member.size) {
      return unsupported(fmt::format("{}: byte {}: member '{}' is compressed or encrypted (method {}); expected stored",
                                     name_, base_ + at, member.name, method));
    }
    if (Status s = locate(at, header, member); !s.ok()) return s;
    members.push_back(member);
    at += entry_size;
  }
  return members;
}

}  // namespace

Result<std::vector<ZipMember>> read_zip_directory(std::span<const std::byte> archive, const std::string& name,
                                                  uint64_t base) {
  return Archive(archive, name, base).members();
}

}  // namespace assay::model
