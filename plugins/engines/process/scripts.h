// BEFORE_SCRIPT and AFTER_SCRIPT of a case, around the program that it starts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/command/command.h"

namespace assay::engines {

// bash texts; empty: none.
struct Scripts {
  std::string before;
  std::string after;

  bool empty() const { return before.empty() && after.empty(); }
};

// Makes `options` run both scripts around its words, in one shell: the first may export variables for the program, the
// second may change EXIT_CODE, the program's and then the shell's. Neither script nor the program finds the scripts'
// own text in its environment. `logs` becomes their LOG_DIR where the environment has none, absolute, made if missing
// (else kInfra). Unchanged where there is no script.
Status run_around(const Scripts& scripts, const std::filesystem::path& logs, command::CommandOptions* options);

// The word that names the program: the first, or the one behind what run_around() put before it.
const std::string& program_of(const std::vector<std::string>& argv);

}  // namespace assay::engines
