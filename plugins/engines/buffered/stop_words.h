// Stop words as token ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "plugins/engines/common/text_codec.h"

namespace assay::engines {

// (words) token ids of each word on its own: "the" is not what " the" ends with. kInvalid naming the word: empty, not
// encodable, or written like a special token (<|name|>, <NAME>) that the tokenizer does not have; kUnsupported without
// a tokenizer.
Result<std::vector<std::vector<int32_t>>> encode_stop_words(const std::vector<std::string>& words,
                                                            const TextCodec& codec);

}  // namespace assay::engines
