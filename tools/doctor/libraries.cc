#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <sstream>

#include "core/plugin/probe.h"
#include "tools/doctor/doctor.h"

namespace assay::doctor {
namespace {

struct Library {
  const char* name;
  std::vector<const char*> files;  // the first that loads counts
  std::string (*version)(void* library);
  const char* cost;  // of its absence
};

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

std::string three(size_t version, size_t major, size_t minor) {
  return fmt::format("{}.{}.{}", version / major, version % major / minor, version % minor);
}

std::string driver_version(void* library) {
  const auto ask = symbol<int (*)(int*)>(library, "cuDriverGetVersion");
  int version = 0;
  if (ask == nullptr || ask(&version) != 0) return "";
  return fmt::format("for CUDA {}.{}", version / 1000, version % 1000 / 10);
}

std::string cublas_version(void* library) {
  const auto ask = symbol<size_t (*)()>(library, "cublasLtGetVersion");
  return ask == nullptr ? "" : three(ask(), 10000, 100);
}

std::string cudnn_version(void* library) {
  const auto ask = symbol<size_t (*)()>(library, "cudnnGetVersion");
  return ask == nullptr ? "" : three(ask(), 10000, 100);
}

std::string curl_text(void* library) {
  const auto ask = symbol<const char* (*)()>(library, "curl_version");
  return ask == nullptr ? "" : ask();
}

std::string openssl_text(void* library) {
  const auto ask = symbol<const char* (*)(int)>(library, "OpenSSL_version");
  return ask == nullptr ? "" : ask(0);
}

const std::vector<Library>& libraries() {
  static const std::vector<Library> all = {
      {"NVIDIA driver", {"libcuda.so.1"}, driver_version, "backend cuda cannot run"},
      {"cuBLASLt",
       {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
       cublas_version,
       "option prefill=fast of backend cuda has no cuBLASLt"},
      {"cuDNN", {"libcudnn.so.9", "libcudnn.so"}, cudnn_version, "option prefill=fast of backend cuda has no cuDNN"},
      {"libcurl", {"libcurl.so.4"}, curl_text, "engines that speak to servers cannot run"},
      {"OpenSSL", {"libcrypto.so.3"}, openssl_text, "digests of checkpoints cannot be made"},
  };
  return all;
}

// In a child process: a library may do anything when it is loaded. "": not there.
std::string version_of(const Library& library) {
  const auto report = plugin::run_in_child(
      [&library] {
        for (const char* file : library.files) {
          void* loaded = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
          if (loaded != nullptr) return std::string(file) + " " + library.version(loaded);
        }
        return std::string();
      },
      std::chrono::seconds(20));
  if (!report || !report->finished) return "";
  return report->text;
}

std::string on_path(const std::string& program, const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + program;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// The launcher needs these; sacct tells it of jobs that Slurm itself has forgotten.
constexpr std::array kSlurmNeeds = {"sbatch", "scontrol", "squeue", "scancel"};
constexpr const char* kSlurmAccounts = "sacct";

void examine_slurm(const DoctorInput& input, std::vector<Finding>* findings) {
  const auto variable = input.environment.find("PATH");
  const std::string path = variable == input.environment.end() ? "" : variable->second;
  std::vector<std::string> missing;
  for (const char* program : kSlurmNeeds) {
    if (on_path(program, path).empty()) missing.emplace_back(program);
  }
  const bool accounts = !on_path(kSlurmAccounts, path).empty();
  if (missing.size() == kSlurmNeeds.size() && !accounts) {
    findings->push_back(
        {"slurm", "commands", State::kOk, "none: this is no Slurm machine, launcher slurm is not for it", ""});
    return;
  }
  if (!missing.empty()) {
    findings->push_back({"slurm", "commands", State::kWarning,
                         fmt::format("missing: {}; launcher slurm cannot work", fmt::join(missing, ", ")),
                         "put Slurm's bin folder on PATH, or name the programs in options of the launcher"});
    return;
  }
  const std::string all = fmt::format("{} are there", fmt::join(kSlurmNeeds, ", "));
  findings->push_back(
      {"slurm", "commands", State::kOk,
       all +
           (accounts ? ", and sacct" : "; sacct is not: jobs that Slurm has forgotten (MinJobAge) cannot be asked for"),
       ""});
}

}  // namespace

void examine_libraries(const DoctorInput& input, std::vector<Finding>* findings) {
  for (const Library& library : libraries()) {
    const std::string found = version_of(library);
    findings->push_back({"libraries", library.name, found.empty() ? State::kWarning : State::kOk,
                         found.empty() ? std::string("not found: ") + library.cost : found, ""});
  }
  std::ifstream driver("/proc/driver/nvidia/version");
  std::string line;
  if (std::getline(driver, line)) findings->push_back({"libraries", "kernel module", State::kOk, line, ""});
  examine_slurm(input, findings);
}

}  // namespace assay::doctor
