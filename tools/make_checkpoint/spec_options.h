// Command line of make_checkpoint -> CheckpointSpec.
#pragma once

#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/model/checkpoint/model_writer.h"

namespace assay::tools {

struct Invocation {
  bool help = false;
  std::string folder;
  model::CheckpointSpec spec;
};

// kInvalid with one line on a wrong command line.
Result<Invocation> parse_command_line(int argc, const char* const* argv);

// Fits a screen: 25 lines.
std::string help_text();

// Long names of all options.
std::vector<std::string> option_names();

}  // namespace assay::tools
