// Special tokens first (ids 0 .. num_special - 1), then the vocabulary file's entries: id = rank + num_special.
#pragma once

#include <memory>

#include "backends/model/tokenizer/tokenizer.h"

namespace assay::model {

// Reads spec.model (tik_vocab.h) and keeps its first vocab_size - num_special entries. bos <s>, eod </s>.
Result<std::unique_ptr<Tokenizer>> open_tik_tokenizer(const TokenizerSpec& spec);

}  // namespace assay::model
