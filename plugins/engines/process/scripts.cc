#include "plugins/engines/process/scripts.h"

#include <system_error>

namespace assay::engines {
namespace {

// Both are evaluated in the shell that runs the program, as Megatron-LM's harness does.
constexpr const char* kBetweenScripts =
    "set -euo pipefail\n"
    "assay_before=${ASSAY_BEFORE_SCRIPT-} assay_after=${ASSAY_AFTER_SCRIPT-}\n"
    "unset ASSAY_BEFORE_SCRIPT ASSAY_AFTER_SCRIPT\n"
    "if [[ -n \"$assay_before\" ]]; then eval \"$assay_before\"; fi\n"
    "\"$@\" && EXIT_CODE=0 || EXIT_CODE=$?\n"
    "if [[ -n \"$assay_after\" ]]; then eval \"$assay_after\"; fi\n"
    "exit ${EXIT_CODE:-0}\n";

}  // namespace

Status run_around(const Scripts& scripts, const std::filesystem::path& logs, command::CommandOptions* options) {
  if (scripts.empty()) return {};
  std::error_code code;
  std::filesystem::create_directories(logs, code);
  if (code) return infra(logs.string() + ": cannot be made: " + code.message());
  options->environment.try_emplace("LOG_DIR", logs.string());
  options->argv.insert(options->argv.begin(), {"bash", "-c", kBetweenScripts, "assay"});
  if (!scripts.before.empty()) options->environment["ASSAY_BEFORE_SCRIPT"] = scripts.before;
  if (!scripts.after.empty()) options->environment["ASSAY_AFTER_SCRIPT"] = scripts.after;
  return {};
}

const std::string& program_of(const std::vector<std::string>& argv) {
  return argv.size() > 4 && argv[2] == kBetweenScripts ? argv[4] : argv.front();
}

}  // namespace assay::engines
