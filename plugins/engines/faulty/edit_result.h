// Changes of a result that keep its parts in step: every token with its logprob, its seconds and its top-n list.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/engines/common/engine_result.h"
#include "plugins/engines/common/text_codec.h"

namespace assay::engines {

// Takes generated token `index` out. The text is left as it is.
void erase_token(EngineResult* result, size_t index);

// Puts `token` before `index` <= G, with the logprob, seconds and top-n list of token `from` < G.
void insert_token(EngineResult* result, size_t index, int32_t token, size_t from);

// Drops all but the first `count` tokens.
void keep_tokens(EngineResult* result, size_t count);

// Rows of the routing belong to positions, of which the last token has none: as many rows are kept as the tokens have,
// rows of zeros fill up.
void fit_routing(EngineResult* result);

// The text that belongs to the tokens now; without a tokenizer it stays as it is.
void decode_again(EngineResult* result, const TextCodec& codec);

// Index of the first entry of `position` in a flattened list; position <= number of positions.
size_t first_entry(const CandidateLists& lists, size_t position);

}  // namespace assay::engines
