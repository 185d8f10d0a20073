// Cuts text into the pieces that byte-pair merges never cross.
// Each code point is replaced by its class symbol (char_class.h), and the pattern, written in symbols, is matched over
// that string: one byte a code point, so match offsets are code point offsets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backends/model/tokenizer/char_class.h"
#include "backends/model/tokenizer/regex.h"
#include "core/include/assay/status.h"

namespace assay::model {

// Immutable: safe from any thread.
class PreTokenizer {
 public:
  // name: "v1" or "v2" (the values of --tiktoken-pattern); else kUnsupported naming both.
  static Result<PreTokenizer> open(const std::string& name, const RegexLimits& limits = {});

  // valid: well-formed UTF-8, without special tokens. Returns the byte offsets at which the pieces end: ascending, the
  // last is valid.size(), none for empty text. Fails with kExhausted when even the interpreter lacks memory.
  Result<std::vector<size_t>> split(std::string_view valid) const;

 private:
  explicit PreTokenizer(Regex regex) : regex_(std::move(regex)) {}

  CharClasses classes_;
  Regex regex_;
};

}  // namespace assay::model
