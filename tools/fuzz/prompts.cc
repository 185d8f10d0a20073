// Lines of prompt files and of `assay tokenize`.
#include "backends/model/tokenizer/json_line.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line = assay::fuzz::text_of(data, size);
  const auto text = assay::model::json_line_text(line, "text");
  if (!text) assay::fuzz::require_message(text.status().message());
  const auto ids = assay::model::json_line_ids(line, "ids");
  if (!ids) assay::fuzz::require_message(ids.status().message());
  return 0;
}
