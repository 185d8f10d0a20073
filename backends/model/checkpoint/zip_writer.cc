#include "backends/model/checkpoint/zip_writer.h"

#include "backends/model/checkpoint/crc32.h"

namespace assay::model {
namespace {

constexpr uint64_t kLocalHeader = 30;
constexpr uint64_t kExtraHeader = 4;
constexpr uint64_t kIn32 = 0xffffffffULL;  // sizes from here on are in zip64 fields

// Little-endian record builder.
class Record {
 public:
  Record& u16(uint64_t value) { return number(value, 2); }
  Record& u32(uint64_t value) { return number(value, 4); }
  Record& u64(uint64_t value) { return number(value, 8); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

uint64_t descriptor_size(uint64_t size) { return size >= kIn32 ? 24 : 16; }

}  // namespace

uint64_t ZipWriter::data_offset(uint64_t at, std::string_view name) {
  const uint64_t unpadded = at + kLocalHeader + name.size() + kExtraHeader;
  return (unpadded + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t ZipWriter::member_end(uint64_t at, std::string_view name, uint64_t size) {
  return data_offset(at, name) + size + descriptor_size(size);
}

// The padding is an extra field 'FB' of 'Z's, as torch writes it; CRC and sizes follow in the data descriptor.
void ZipWriter::begin(std::string_view name) {
  const uint64_t at = sink_.offset() - base_;
  const uint64_t padding = data_offset(at, name) - at - kLocalHeader - name.size() - kExtraHeader;
  Record local;
  local.u32(0x04034b50).u16(0).u16(0x0808).u16(0).u16(0).u16(0).u32(0).u32(0).u32(0);
  local.u16(name.size()).u16(kExtraHeader + padding).text(name).text("FB").u16(padding);
  sink_.write(local.bytes());
  sink_.write(std::string(padding, 'Z'));
  entries_.push_back({std::string(name), at, 0, 0});
}

void ZipWriter::append(std::span<const std::byte> data) {
  Entry& entry = entries_.back();
  entry.crc = crc32(data, entry.crc);
  entry.size += data.size();
  sink_.write(data);
}

void ZipWriter::end() {
  const Entry& entry = entries_.back();
  Record descriptor;
  descriptor.u32(0x08074b50).u32(entry.crc);
  if (entry.size >= kIn32) {
    descriptor.u64(entry.size).u64(entry.size);
  } else {
    descriptor.u32(entry.size).u32(entry.size);
  }
  sink_.write(descriptor.bytes());
}

void ZipWriter::add(std::string_view name, std::string_view data) {
  begin(name);
  append({reinterpret_cast<const std::byte*>(data.data()), data.size()});
  end();
}

void ZipWriter::finish() {
  const uint64_t directory = sink_.offset() - base_;
  for (const Entry& entry : entries_) {
    Record extra;
    if (entry.size >= kIn32 || entry.header >= kIn32) {
      Record fields;
      if (entry.size >= kIn32) fields.u64(entry.size).u64(entry.size);
      if (entry.header >= kIn32) fields.u64(entry.header);
      extra.u16(1).u16(fields.bytes().size()).text(fields.bytes());
    }
    const uint64_t size = std::min(entry.size, kIn32);
    Record record;
    record.u32(0x02014b50).u16(0).u16(0).u16(0x0808).u16(0).u16(0).u16(0).u32(entry.crc).u32(size).u32(size);
    record.u16(entry.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0).u32(0);
    record.u32(std::min(entry.header, kIn32)).text(entry.name).text(extra.bytes());
    sink_.write(record.bytes());
  }
  const uint64_t end64 = sink_.offset() - base_;
  const uint64_t count = entries_.size();
  Record ends;
  ends.u32(0x06064b50).u64(44).u16(0x031e).u16(45).u32(0).u32(0).u64(count).u64(count);
  ends.u64(end64 - directory).u64(directory);
  ends.u32(0x07064b50).u32(0).u64(end64).u32(1);
  ends.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count);
  ends.u32(std::min(end64 - directory, kIn32)).u32(std::min(directory, kIn32)).u16(0);
  sink_.write(ends.bytes());
}

}  // namespace assay::model
