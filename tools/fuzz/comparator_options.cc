// JSON that comparators take and give: options, verdicts, evidence.
#include <nlohmann/json.hpp>

#include "core/compare/emit.h"
#include "core/compare/evidence_json.h"
#include "core/compare/render.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::compare;
  const std::string_view text = assay::fuzz::text_of(data, size);
  const auto options = parse_options({text.data(), text.size()});
  if (!options) assay::fuzz::require_message(options.status().message());
  const auto verdict = parse_verdict_json(text);
  if (!verdict) assay::fuzz::require_message(verdict.status().message());
  return 0;
}
