// What the options of launcher `command` say: see docs/launchers.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::launchers {

struct HostSlots {
  std::string name;
  int slots = 1;  // tasks at once
};

struct CommandOptions {
  std::vector<std::string> start;   // words with template variables
  std::vector<std::string> poll;    // empty: the process that `start` runs stands for the task
  std::vector<std::string> cancel;  // empty: that process is ended
  std::vector<HostSlots> hosts;     // empty: tasks have no host
  int slots = 0;                    // tasks at once where there are no hosts; 0: no limit
  int host_failures = 3;            // in a row, after which a host gets no more tasks
  std::vector<int> lost_codes;      // exit codes that tell of the way to the task, not of the task
  double command_seconds = 60;      // poll and cancel may take; start too where there is a poll
};

extern const char* const kCommandOptionsSchema;

// Fails with kInvalid: an unknown member (with the nearest name), a wrong type, an unknown template variable, no start.
Result<CommandOptions> parse_command_options(std::string_view json);

}  // namespace assay::launchers
