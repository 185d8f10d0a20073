#include "plugins/engines/process/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace assay::engines {

std::vector<std::string> launch_words(const ProcessOptions& options, const train::Job& job) {
  const bool fault_tolerant = job.launcher == "ft_launcher";
  std::vector<std::string> words = fault_tolerant ? options.ft_launcher : options.torchrun;
  const auto add = [&words](const char* flag, std::string value) {
    words.emplace_back(flag);
    words.push_back(std::move(value));
  };
  add("--nproc_per_node", std::to_string(job.processes_per_node));
  add("--nnodes", std::to_string(job.nodes));
  add("--master_addr", job.master_address);
  add("--master_port", std::to_string(job.master_port));
  add("--node_rank", std::to_string(job.node_rank));
  add("--log-dir", job.folders.logs);
  add("--tee", fmt::format("0:3,{}:3", job.processes_per_node - 1));
  add("--redirects", "3");
  if (fault_tolerant) words.push_back(fmt::format("--max-restarts={}", job.max_restarts));
  if (job.script_is_program) words.emplace_back("--no-python");
  return words;
}

std::vector<std::string> script_words(const train::Job& job, const std::filesystem::path& folder,
                                      const std::filesystem::path& programs) {
  constexpr const char* kBlanks = " \t\n";
  std::error_code code;
  if (std::filesystem::is_regular_file(folder / job.script, code)) return {job.script};
  std::vector<std::string> words;
  for (size_t begin = job.script.find_first_not_of(kBlanks); begin != std::string::npos;) {
    const size_t end = std::min(job.script.find_first_of(kBlanks, begin), job.script.size());
    words.push_back(job.script.substr(begin, end - begin));
    begin = job.script.find_first_not_of(kBlanks, end);
  }
  if (words.empty() || !job.script_is_program) return words;
  const std::filesystem::path name(words.front());
  if (name.is_relative() && std::filesystem::is_regular_file(programs / name, code)) {
    words.front() = (programs / name).string();
  }
  return words;
}

void add_launch_environment(const std::string& folder, std::map<std::string, std::string>* environment) {
  constexpr std::array<std::pair<const char*, const char*>, 8> kDefaults = {{{"NCCL_PROTO", "simple"},
                                                                             {"NCCL_ALGO", "Ring"},
                                                                             {"NCCL_COLLNET_ENABLE", "0"},
                                                                             {"NCCL_NVLS_ENABLE", "0"},
                                                                             {"NCCL_TUNER_PLUGIN", ""},
                                                                             {"NCCL_BUFFSIZE", "4194304"},
                                                                             {"TORCH_NCCL_AVOID_RECORD_STREAMS", "1"},
                                                                             {"WANDB_API_KEY", ""}}};
  for (const auto& [name, value] : kDefaults) {
    std::string& set = (*environment)[name];
    if (set.empty()) set = value;
  }
  const auto path = environment->find("PYTHONPATH");
  const std::string before = path == environment->end() ? "" : path->second;
  (*environment)["PYTHONPATH"] = folder + ":" + before;
}

}  // namespace assay::engines
