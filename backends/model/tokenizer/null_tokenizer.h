// The tokenizer without a vocabulary: text is decimal ids separated by single blanks.
#pragma once

#include <memory>

#include "backends/model/tokenizer/tokenizer.h"

namespace assay::model {

// Needs spec.vocab_size; spec.null_eod_id is its eod (default vocab_size - 1); it has no bos. Text that is empty, has
// two blanks in a row, anything but digits or an id outside of the vocabulary is kInvalid with the byte offset. It has
// no special tokens: decode keeps every id.
Result<std::unique_ptr<Tokenizer>> open_null_tokenizer(const TokenizerSpec& spec);

}  // namespace assay::model
