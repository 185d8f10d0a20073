// Pending goldens: a file that is read is written and read again alike.
#include "core/golden/pending.h"

#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const assay::fuzz::Folder kFolder;
  const std::string name = assay::pending_name("dev", "cpu_x86_64");
  const auto file = kFolder.write(name, assay::fuzz::text_of(data, size));
  const auto pending = assay::read_pending(file.string(), kFolder.path().string());
  if (!pending) {
    assay::fuzz::require_message(pending.status().message());
    return 0;
  }
  const std::string text = assay::pending_text(*pending);
  kFolder.write(name, text);
  const auto again = assay::read_pending(file.string(), kFolder.path().string());
  assay::fuzz::require(again.ok(), "what was written reads back");
  assay::fuzz::require(assay::pending_text(*again) == text, "and says the same");
  return 0;
}
