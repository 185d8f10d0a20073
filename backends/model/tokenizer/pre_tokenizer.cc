#include "backends/model/tokenizer/pre_tokenizer.h"

#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

// Alternatives in order, the first that matches wins (behaviour: megatron.md section 11; symbols: char_class.h).
// Letters are [Ulo], whitespace is [esw].
constexpr const char* kV1 =
    "[^eUlon]?+[Ulo]+"   // letters, after at most one char that is not CR, LF, letter or number; never given back
    "|n"                 // a single number char
    "|s?[^eswUlon]++e*"  // punctuation and marks, a space before and line ends behind
    "|[esw]*e"           // whitespace up to its last line end
    "|[esw]+(?![^esw])"  // whitespace, but its last char is left to a word that follows
    "|[esw]+";
constexpr const char* kV2 =
    "[^eUlon]?[Uom]*[lom]+"   // capitals, then at least one lower-case letter
    "|[^eUlon]?[Uom]+[lom]*"  // at least one capital, then lower case
    "|n"
    "|s?[^eswUlon]+[e/]*"
    "|[esw]*e+"
    "|[esw]+(?![^esw])"
    "|[esw]+";

}  // namespace

Result<PreTokenizer> PreTokenizer::open(const std::string& name, const RegexLimits& limits) {
  if (name != "v1" && name != "v2") {
    return unsupported("--tiktoken-pattern: " + utf8::quote(name) + " is not known, expected v1 or v2");
  }
  Result<Regex> regex = Regex::compile(name == "v1" ? kV1 : kV2, limits);
  if (!regex) return regex.status();
  return PreTokenizer(*std::move(regex));
}

Result<std::vector<size_t>> PreTokenizer::split(std::string_view valid) const {
  const std::string symbols = classes_.symbols(valid);
  Regex::Scanner scanner(regex_, symbols);
  std::vector<size_t> ends;
  size_t bytes = 0;
  for (size_t symbol = 0; symbol < symbols.size();) {
    const Result<size_t> end = scanner.match_end(symbol);
    if (!end) return end.status().with("pre-tokenizer");
    bytes += utf8::offset_of(valid.substr(bytes), *end - symbol);
    ends.push_back(bytes);
    symbol = *end;
  }
  return ends;
}

}  // namespace assay::model
