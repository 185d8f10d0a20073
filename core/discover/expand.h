// MODEL_ARGS -> the words of the command line, exactly as the ancestor's harness makes them (megatron.md 3.3).
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"

namespace assay::discover {

struct ArgumentWord {
  std::string text;
  size_t entry = 0;  // index into ModelArgs::entries
  bool key = false;  // the word is the entry's key
};

// Substituted `args` as ordered words. Value forms, after YAML's and xargs's unquoting: true -> the flag alone; ""
// (quoted) -> nothing; (...) -> one word; [...] -> the inner words; with blanks, | or parentheses -> one word; else
// (false, null, numbers) -> one word, each through the shell's own unquoting. A YAML list of one item is [item]; one of
// several items gives each item as a word, unchanged. `config` names the file in messages ("file:line:column: ...").
// Fails with kInvalid on an unbalanced quote, on characters that the shell would act on, on several lines and on an
// entry without a value.
Result<std::vector<ArgumentWord>> expand_arguments(const ModelArgs& args, const std::string& config);

}  // namespace assay::discover
