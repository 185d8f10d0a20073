// make_checkpoint: a torch_dist checkpoint of a given shape with seeded weights. Exit code 0, 1 (failed), 2 (usage).
#include <fmt/format.h>

#include <cstdio>

#include "tools/make_checkpoint/spec_options.h"

int main(int argc, char** argv) {
  const auto invocation = assay::tools::parse_command_line(argc, argv);
  if (!invocation.ok()) {
    fmt::print(stderr, "make_checkpoint: {} (--help lists the options)\n", invocation.status().message());
    return 2;
  }
  if (invocation->help) {
    fmt::print("{}", assay::tools::help_text());
    return 0;
  }
  const assay::Status status = assay::model::write_checkpoint(invocation->spec, invocation->folder);
  if (!status.ok()) {
    fmt::print(stderr, "make_checkpoint: {}\n", status.message());
    return 1;
  }
  fmt::print("{}\n", invocation->folder);
  return 0;
}
