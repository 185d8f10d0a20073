// What engine process is told: a command, and the facts of the case it is for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "plugins/engines/process/scripts.h"

namespace assay::engines {

// JSON schema of the options object.
extern const char* const kProcessOptionsSchema;

// Member `case` of the options, which the planner fills in. Absent members are empty.
struct CaseFacts {
  std::string name;
  std::string dir;                      // folder of the case
  std::string config;                   // its model_config.yaml
  std::string output;                   // folder for what this run of it leaves; empty: a temporary one
  std::string output_path;              // --output-path of MODEL_ARGS: where its script writes
  std::vector<std::string> model_args;  // MODEL_ARGS as words of a command line
  std::string script;                   // ASSAY.script
  std::string launcher;                 // LAUNCHER
  Scripts scripts;                      // BEFORE_SCRIPT and AFTER_SCRIPT, around every command
  std::string checkpoint;               // --load
  std::string tokenizer;                // --tokenizer-model
  double time_limit_s = 0;              // of the case; 0: none
  int64_t memory_limit = 0;             // of the case, bytes; 0: none
  int32_t first_id = 0;                 // of the requests
  int32_t output_every = 1;             // the script writes requests 0, output_every, ... and the last one
};

enum class OutputFormat { kAuto, kGolden, kLines };

struct ProcessOptions {
  std::vector<std::string> command;  // with template variables; empty: the engine can train, and answers no request
  OutputFormat format = OutputFormat::kAuto;
  bool per_request = false;                        // one command a request
  std::map<std::string, std::string> environment;  // over what is passed
  // Names that are passed from the environment of the worker; nullopt: all.
  std::optional<std::vector<std::string>> pass_environment;
  std::string folder;                    // working folder; empty: the worker's
  double time_limit = 0;                 // seconds, of all requests together; 0: the case's
  int64_t memory_limit = 0;              // bytes of anonymous resident memory of all processes together; 0: the case's
  int64_t output_limit = 0;              // bytes of stdout and of stderr
  double kill_grace = 5;                 // seconds from SIGTERM to SIGKILL
  std::string launcher;                  // of {launch}: "torchrun", "ft_launcher"; empty: the case's
  int32_t processes = 0;                 // of {launch}, on a node; 0: GPUS_PER_NODE of the environment, else 8
  std::vector<std::string> torchrun;     // words that start it
  std::vector<std::string> ft_launcher;  // words that start it
  CaseFacts facts;
};

// kInvalid: no JSON object, a member that is unknown or of the wrong type or range, a command string that a shell would
// do more with than split.
Result<ProcessOptions> parse_process_options(std::string_view json);

}  // namespace assay::engines
