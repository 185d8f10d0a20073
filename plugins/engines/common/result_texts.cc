#include "plugins/engines/common/result_texts.h"

#include <string>

namespace assay::engines {

void add_cut_text(const TextCodec& codec, std::span<const int32_t> tokens, const Host& host, EngineResult* result) {
  const auto generated = codec.generated(result->prompt.value_or(""), tokens);
  if (!generated) return;
  result->text = generated->text;
  if (generated->cut_in_place) return;
  host.log(ASSAY_LOG_WARN, "request " + std::to_string(result->id) +
                               ": the prompt does not read back from its tokens, so generated_text may begin in "
                               "the wrong place; compare generated_tokens");
}

void add_candidate_texts(const TextCodec& codec, EngineResult* result) {
  for (CandidateLists* lists : {&result->prompt_top_n, &result->generated_top_n}) {
    for (size_t i = 0; i < lists->ids.size(); ++i) lists->texts[i] = codec.token(lists->ids[i]);
  }
}

}  // namespace assay::engines
