// The two unquotings that a MODEL_ARGS value passes on its way to the command line (megatron.md 3.3), as text
// functions. Nothing is executed: what a shell would execute, expand or refuse is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::discover {

// What `echo TEXT | xargs` prints: blanks trimmed and collapsed, one level of ' " and \ removed. kInvalid on an
// unbalanced quote (an apostrophe), as xargs fails there.
Result<std::string> xargs_unquote(std::string_view text);

// The words that a shell makes of TEXT inside ARRAY=(TEXT). kInvalid, naming the character, on anything that the shell
// would execute or expand: $ ` ; & | < > ( ) and, outside quotes, ~ and # at the start of a word, {a,b}, and file
// patterns behind a slash or of nothing but wildcards. Other wildcards stay literal, as they do where no file matches.
Result<std::vector<std::string>> split_shell_words(std::string_view text);

}  // namespace assay::discover
