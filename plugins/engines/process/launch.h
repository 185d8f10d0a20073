// How Megatron-LM's harness starts a script on several processes of a node.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/train/job.h"
#include "plugins/engines/process/options.h"

namespace assay::engines {

// Words before the script: "python -m torch.distributed.run --nproc_per_node 8 ...", or ft_launcher's, with its
// --max-restarts. `job.launcher` chooses; its folders.logs is where the launcher keeps the output of every process.
std::vector<std::string> launch_words(const ProcessOptions& options, const train::Job& job);

// Where the harness takes a script that is a program from.
inline constexpr const char* kProgramFolder = "/opt/venv/bin";

// The words of job.script, which the harness leaves to a shell to split at blanks: "nemo llm pretrain" is three. A file
// in `folder`, the working folder, is one word whatever its name. The first word of a script that is a program comes
// from `programs` where that folder has it, as the harness always takes it from there.
std::vector<std::string> script_words(const train::Job& job, const std::filesystem::path& folder,
                                      const std::filesystem::path& programs);

// Sets what the harness exports where `environment` has no such variable, or an empty one: NCCL_PROTO and the like.
// `folder` and a colon are put before PYTHONPATH.
void add_launch_environment(const std::string& folder, std::map<std::string, std::string>* environment);

}  // namespace assay::engines
