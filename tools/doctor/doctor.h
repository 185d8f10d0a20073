// What `assay doctor` finds out about a machine and an installation.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/plugin/search_path.h"

namespace assay::doctor {

enum class State { kOk, kWarning, kProblem };

struct Finding {
  std::string section;  // "cpu"
  std::string name;     // "model"
  State state = State::kOk;
  std::string text;    // one line: what was seen
  std::string remedy;  // one line; empty where nothing is to be done
};

struct DoctorInput {
  std::string version;
  plugin::SearchOptions plugins;
  std::filesystem::path program_dir;  // where assay and assay-worker lie
  std::filesystem::path output;       // where runs would write: the current folder
  std::map<std::string, std::string> environment;
};

// Everything, in order of sections. Foreign code (plugins, libraries) runs in child processes alone.
std::vector<Finding> examine(const DoctorInput& input);

// Parts of it.
void examine_plugins(const DoctorInput& input, std::vector<Finding>* findings);    // plugins, backends, devices
void examine_libraries(const DoctorInput& input, std::vector<Finding>* findings);  // CUDA, curl, OpenSSL, Slurm
void examine_machine(const DoctorInput& input, std::vector<Finding>* findings);    // cpu, memory, limits, folders

bool healthy(const std::vector<Finding>& findings);  // no problem among them

std::string to_text(const std::vector<Finding>& findings, const std::string& version);
std::string to_json(const std::vector<Finding>& findings, const std::string& version);

}  // namespace assay::doctor
