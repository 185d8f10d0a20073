// MODEL_ARGS -> the words of the command line, exactly as Megatron-LM's harness makes them (megatron.md 3.3).
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"

namespace assay::discover {

struct ArgumentWord {
  std::string text;
  size_t entry = 0;  // index into ModelArgs::entries
  bool key = false;  // the word is the entry's first one
};

// `args` of harness_args() as ordered words. An entry is printed as "key: value" and each line of that is taken for
// itself: up to its first colon it is the key, behind its first ": " the value, which xargs unquotes. Then: true -> the
// key alone; (...) -> one word; [...] -> the inner words; with blanks, | or parentheses -> one word; else (false, null,
// numbers) -> the shell's own unquoting. An entry whose value is a quoted empty text is dropped. `nemo`: key=value, the
// key alone for true, one word where the value holds blanks; nothing is unquoted by xargs.
// `config` names the file in messages ("file:line:column: ..."). Fails with kInvalid on an unbalanced quote and on
// characters that the shell would act on.
Result<std::vector<ArgumentWord>> expand_arguments(const ModelArgs& args, const std::string& config, bool nemo = false);

}  // namespace assay::discover
