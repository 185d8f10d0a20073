// `assay plugin new` and `assay plugin test`.
#pragma once

#include "tools/assay/command.h"

namespace assay::cli {

// Each takes the words after `plugin new` or `plugin test`, and does as a command does.
int plugin_new_command(const Words& words);
int plugin_test_command(const Words& words);

}  // namespace assay::cli
