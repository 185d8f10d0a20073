// Texts of a finished request.
#pragma once

#include <cstdint>
#include <span>

#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/common/text_codec.h"

namespace assay::engines {

// What stands behind the prompt in the text of `tokens` (prompt and generated), as the static script cuts it. Needs
// result->prompt. Logs a line where the cut may be in the wrong place. Without a tokenizer there is no text.
void add_cut_text(const TextCodec& codec, std::span<const int32_t> tokens, const Host& host, EngineResult* result);

// Texts of the candidates of both top-n lists.
void add_candidate_texts(const TextCodec& codec, EngineResult* result);

}  // namespace assay::engines
