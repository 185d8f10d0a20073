// Options of launchers: what they share, and their own.
#include "core/run/launch_options.h"
#include "plugins/launchers/command/options.h"
#include "plugins/launchers/slurm/profile.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string json(assay::fuzz::text_of(data, size));
  const auto shared = assay::run::parse_launch_options(json);
  if (!shared) assay::fuzz::require_message(shared.status().message());
  if (shared) assay::fuzz::require(shared->losses >= 0 && shared->poll > 0, "values are in range");
  const auto command = assay::launchers::parse_command_options(json);
  if (!command) assay::fuzz::require_message(command.status().message());
  if (command) assay::fuzz::require(!command->start.empty(), "there is a command");
  const auto profile = assay::launchers::parse_profile(json);
  if (!profile) assay::fuzz::require_message(profile.status().message());
  if (profile)
    assay::fuzz::require(profile->partition.find('\n') == std::string::npos, "a line of a script is one line");
  return 0;
}
