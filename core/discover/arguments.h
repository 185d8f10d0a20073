// The command line's words, read as Megatron-LM's parser reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"
#include "backends/model/args_record.h"
#include "core/discover/argument_table.h"
#include "core/discover/expand.h"
#include "core/discover/substitute.h"

namespace assay::discover {

// One occurrence of an argument.
struct GivenArgument {
  std::string option;  // as written, with its dashes
  const ArgumentInfo* info = nullptr;
  std::vector<std::string> values;  // words behind it
  model::ArgValue value;            // typed
  SourcePlace place;
  bool overridden = false;  // a later occurrence counts
};

struct ParsedArguments {
  std::vector<GivenArgument> given;  // in order
  model::ArgRecord record;           // dest -> value of the last occurrence; arguments not given are absent

  const GivenArgument* find(std::string_view dest) const;  // the occurrence that counts; nullptr: not given
};

// Number texts as Python's int() and float() take them: blanks around and single underscores between digits allowed.
Result<int64_t> parse_int(std::string_view text);
Result<double> parse_float(std::string_view text);

// A layer pattern: an integer, or a list expression of digits, [ ], ( ), + and * such as ([0]*1+[1]*26), evaluated.
// kInvalid on anything else, on more than 4,096 items and on nesting deeper than 32.
Result<model::ArgValue> parse_layer_pattern(std::string_view text);

// Fails with kInvalid, naming place and argument: an unknown argument (with the nearest name), a missing or left-over
// value, a value of the wrong type or outside its choices.
Result<ParsedArguments> parse_arguments(const std::vector<ArgumentWord>& words, const ModelArgs& args,
                                        const std::string& config);

// Substitution, expansion and parsing of `test_case`'s MODEL_ARGS in one.
Result<ParsedArguments> read_arguments(const TestCase& test_case, const Variables& variables);

}  // namespace assay::discover
