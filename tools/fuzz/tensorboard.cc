// A TensorBoard event file: as raw bytes, and as records with true checksums, which chance would not find.
#include "core/train/crc32c.h"
#include "core/train/event_file.h"
#include "core/train/records.h"
#include "tools/fuzz/fuzz.h"

namespace {

template <typename Number>
void append(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Each record is a byte for its length, then the data.
std::string framed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::string_view data = bytes.substr(1, static_cast<uint8_t>(bytes[0]));
    std::string length;
    append(length, uint64_t{data.size()});
    out += length;
    append(out, assay::train::masked_crc32c(length));
    out += data;
    append(out, assay::train::masked_crc32c(data));
    bytes.remove_prefix(1 + data.size());
  }
  return out;
}

void check_records(std::string_view bytes) {
  assay::train::RecordReader reader(bytes);
  while (reader.next() == assay::train::RecordReader::State::kRecord) {
    const char* data = reader.data().data();
    assay::fuzz::require(data >= bytes.data() && data + reader.data().size() <= bytes.data() + bytes.size(),
                         "a record lies in the file");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::train;
  if (size == 0) return 0;
  const std::string_view input = assay::fuzz::text_of(data, size).substr(1);
  const bool raw = (data[0] & 1) != 0;
  const std::string bytes = raw ? std::string(input) : framed(input);
  check_records(bytes);
  const EventFile file = read_events(bytes, "f");
  for (const ScalarTag& tag : file.tags) {
    for (const ScalarPoint& point : tag.points)
      assay::fuzz::require(tag.simple || !point.simple, "a tag with a simple value says so");
  }
  if (!file.corrupt.ok()) assay::fuzz::require_message(file.corrupt.message());
  if (raw) return 0;
  assay::fuzz::require(file.torn.empty(), "a file of whole records is not torn");
  if (bytes.empty() || !file.corrupt.ok()) return 0;
  const EventFile cut = read_events(std::string_view(bytes).substr(0, bytes.size() - 1), "f");
  assay::fuzz::require(!cut.torn.empty() || !cut.corrupt.ok(), "a file that ends inside a record is not whole");
  return 0;
}
