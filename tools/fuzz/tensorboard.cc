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

size_t count_records(std::string_view bytes) {
  assay::train::RecordReader reader(bytes);
  size_t count = 0;
  while (reader.next() == assay::train::RecordReader::State::kRecord) {
    const char* data = reader.data().data();
    assay::fuzz::require(data >= bytes.data() && data + reader.data().size() <= bytes.data() + bytes.size(),
                         "a record lies in the file");
    ++count;
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::train;
  if (size == 0) return 0;
  const std::string_view input = assay::fuzz::text_of(data, size).substr(1);
  const bool raw = (data[0] & 1) != 0;
  const std::string bytes = raw ? std::string(input) : framed(input);
  const size_t records = count_records(bytes);
  for (const ScalarForms forms : {ScalarForms::kSimple, ScalarForms::kAll}) {
    const EventFile file = read_events(bytes, "f", forms);
    for (const ScalarTag& tag : file.tags)
      assay::fuzz::require(!tag.points.empty() || records > 0, "points have records");
    if (!file.corrupt.ok()) assay::fuzz::require_message(file.corrupt.message());
    assay::fuzz::require(raw || file.torn.empty(), "a file of whole records is not torn");
  }
  return 0;
}
