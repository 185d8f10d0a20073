// One run of a training program as an engine gets it: the JSON object of assay_training::job (docs/training.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::train {

// All absolute; made by the runner before the engine is called.
struct JobFolders {
  std::string output = {};       // of this repeat: everything else lies below it, unless the caller said otherwise
  std::string logs = {};         // stdout and stderr of every process
  std::string tensorboard = {};  // where the program writes event files
  std::string load = {};         // checkpoint to begin from; may be empty or absent
  std::string save = {};         // where it saves checkpoints
};

struct Job {
  std::string name;  // of the case
  int repeat = 1;    // of the case, from 1
  int run = 1;       // of the repeat, from 1
  std::string script;
  bool script_is_program = false;  // started as it is, not through python (Megatron-LM's "nemo" scripts)
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // over that of the engine's process
  std::string launcher = "torchrun";               // or "ft_launcher"
  int max_restarts = 3;                            // of ft_launcher
  int processes_per_node = 8;
  int nodes = 1;
  int node_rank = 0;
  std::string master_address = "localhost";
  int master_port = 29500;
  std::string folder;  // working folder; empty: that of the engine's process
  JobFolders folders;
  double time_limit_s = 0;           // seconds; 0: none
  uint64_t memory_limit = 0;         // bytes of anonymous resident memory, all processes together; 0: none
  std::vector<std::string> command;  // instead of the launch line, `arguments` behind it; empty: the launch line
  std::string before_script;         // bash text; empty: none
  std::string after_script;
};

// Whether Megatron-LM's harness starts this script as it is, and not through python: "nemo" stands in it, in any case.
bool starts_as_program(std::string_view script);

// Ill-formed UTF-8 becomes U+FFFD.
std::string to_json(const Job& job);

// Members that are absent keep their defaults, unknown ones are ignored; null and a wrong type are errors. Fails with
// kInvalid, naming the member, also where neither script nor command is there, the launcher is another word, or a
// number cannot be meant.
Result<Job> parse_job(std::string_view json);

}  // namespace assay::train
