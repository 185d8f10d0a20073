// Known completions: sources, prompt, golden and result split off the input at zero bytes.
#include "core/compare/known_completion.h"

#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::compare;
  std::string_view rest = assay::fuzz::text_of(data, size);
  std::string_view parts[4];
  for (std::string_view& part : parts) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::vector<SourceText> sources = {{"source", std::string(parts[0])}};
  for (const bool out : {false, true}) {
    KnownRequest request{.id = "0", .prompt = parts[1], .golden_text = {}, .actual_text = {}, .out_of_tokens = out};
    if (!parts[2].empty()) request.golden_text = parts[2];
    if (!parts[3].empty()) request.actual_text = parts[3];
    const auto reference = known_reference(sources, request);
    if (!reference) {
      assay::fuzz::require_message(reference.status().message());
    } else {
      assay::fuzz::require(parts[0].find(*reference) != std::string_view::npos, "the reference is part of the source");
    }
    const auto own = check_own_reference(request);
    if (!own.ok()) assay::fuzz::require_message(own.message());
  }
  return 0;
}
