// How Megatron-LM's harness starts a script on several processes of a node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/train/job.h"
#include "plugins/engines/process/options.h"

namespace assay::engines {

// Words before the script: "python -m torch.distributed.run --nproc_per_node 8 ...", or ft_launcher's, with its
// --max-restarts. `job.launcher` chooses; its folders.logs is where the launcher keeps the output of every process.
std::vector<std::string> launch_words(const ProcessOptions& options, const train::Job& job);

// Sets what the harness exports where `environment` has no such variable, or an empty one: NCCL_PROTO and the like.
// `folder` and a colon are put before PYTHONPATH.
void add_launch_environment(const std::string& folder, std::map<std::string, std::string>* environment);

}  // namespace assay::engines
