// Expressions of --filter.
#include "core/run/filter.h"

#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using assay::run::Filter;
  const std::string text(assay::fuzz::text_of(data, size));
  const auto filter = Filter::parse(text);
  if (!filter) {
    assay::fuzz::require_message(filter.status().message());
    return 0;
  }
  const assay::run::FilterSubject subject{.name = "moe/case_b1@prefix_cache",
                                          .model = "moe",
                                          .engine = "buffered",
                                          .metrics = {"logprobs", "generated_tokens"},
                                          .tags = {"slow"},
                                          .relation = "prefix_cache"};
  const bool holds = filter->matches(subject);
  const auto negated = Filter::parse("not (" + text + ")");
  const bool blank = text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
  if (negated && !blank) assay::fuzz::require(negated->matches(subject) != holds, "not is the contrary");
  return 0;
}
