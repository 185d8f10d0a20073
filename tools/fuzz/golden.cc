// Result files: what the quick reader takes, the plain one reads alike; what was written reads back.
#include <cstring>

#include "core/golden/fast_read.h"
#include "core/golden/plain_read.h"
#include "core/golden/stable_text.h"
#include "tools/fuzz/fuzz.h"

namespace {

std::string all_of(const assay::ResultSet& set) {
  std::string text = results_text(set);
  for (const auto& request : set.requests) {
    if (request.routing) text += std::to_string(request.routing->tokens) + "x" + std::to_string(request.routing->topk);
  }
  for (const auto& quantity : set.quantities) text += quantity.scalar ? "one" : "list";
  for (const auto& note : set.notes) text += note;
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = assay::fuzz::text_of(data, size);
  const auto plain = assay::json::read_plainly(text, "f");
  if (!plain) assay::fuzz::require_message(plain.status().message());
  if (const auto fast = assay::json::read_fast(text)) {
    assay::fuzz::require(plain.ok(), "what the quick reader takes is right");
    assay::fuzz::require(all_of(*fast) == all_of(*plain), "both readers read alike");
  }
  const auto set = assay::read_results_text(text, "f");
  assay::fuzz::require(set.ok() == plain.ok(), "reading is reading plainly");
  if (!set) return 0;
  const std::string written = assay::results_text(*set);
  const auto again = assay::read_results_text(written, "f");
  assay::fuzz::require(again.ok(), "what was written reads back");
  assay::fuzz::require(assay::results_text(*again) == written, "and says the same");
  const auto stable = assay::read_results_text(assay::stable_text(*set), "f");
  assay::fuzz::require(stable.ok(), "the stable layout reads back");
  return 0;
}
