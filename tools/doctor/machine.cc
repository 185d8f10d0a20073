#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/run/process.h"
#include "tools/doctor/doctor.h"

namespace assay::doctor {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Value of "key : value" in a file of /proc; "": none.
std::string field(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    const size_t begin = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "";
}

bool has_word(const std::string& text, const std::string& word) {
  return (" " + text + " ").find(" " + word + " ") != std::string::npos;
}

void cpu(std::vector<Finding>* findings) {
  const std::string model = field("/proc/cpuinfo", "model name");
  cpu_set_t allowed;
  const int usable = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  findings->push_back({"cpu", "model", State::kOk,
                       fmt::format("{}, {} processors, {} of them may be used", model.empty() ? "unknown" : model,
                                   ::sysconf(_SC_NPROCESSORS_ONLN), usable),
                       ""});
  const std::string flags = field("/proc/cpuinfo", "flags");
  const bool avx512 = has_word(flags, "avx512f") && has_word(flags, "avx512bw") && has_word(flags, "avx512vl");
  const bool avx2 = has_word(flags, "avx2") && has_word(flags, "fma");
  findings->push_back({"cpu", "instructions", avx2 ? State::kOk : State::kWarning,
                       avx512 ? "AVX-512 and AVX2"
                       : avx2 ? "AVX2"
                              : "neither AVX-512 nor AVX2 with FMA",
                       avx2 ? "" : "backend cpu needs one of them; use backend reference, which is slow"});
  std::istringstream quota(first_line("/sys/fs/cgroup/cpu.max"));
  std::string most;
  double period = 0;
  if (quota >> most >> period && most != "max" && period > 0) {
    findings->push_back(
        {"cpu", "control group", State::kOk, fmt::format("{:.1f} processors", std::atof(most.c_str()) / period), ""});
  }
}

void memory(std::vector<Finding>* findings) {
  const double usable = static_cast<double>(run::machine_memory()) / kGiB;
  const double available = std::atof(field("/proc/meminfo", "MemAvailable").c_str()) * 1024 / kGiB;
  findings->push_back(
      {"memory", "usable", usable < 1 ? State::kWarning : State::kOk,
       fmt::format("{:.1f} GiB for this process (machine, or its control group's limit); {:.1f} GiB available now",
                   usable, available),
       usable < 1 ? "less than 1 GiB: only the smallest models fit" : ""});
}

void limit(std::vector<Finding>* findings, const char* name, int resource, uint64_t least, const char* remedy) {
  rlimit now = {};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return;
  const bool enough = now.rlim_cur == RLIM_INFINITY || now.rlim_cur >= least;
  findings->push_back({"limits", name, enough ? State::kOk : State::kWarning,
                       now.rlim_cur == RLIM_INFINITY
                           ? "unlimited"
                           : fmt::format("{} (hard limit {})", now.rlim_cur,
                                         now.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(now.rlim_max)),
                       enough ? "" : remedy});
}

// Whether a file can be made in `folder`, and how much room there is.
void folder(std::vector<Finding>* findings, const std::string& name, const std::filesystem::path& path,
            double least_gib, State if_not) {
  std::string probe = (path / ".assay-doctor-XXXXXX").string();
  const int file = ::mkstemp(probe.data());
  const int reason = errno;
  if (file >= 0) {
    ::close(file);
    ::unlink(probe.c_str());
  }
  struct statvfs space = {};
  const bool known = ::statvfs(path.c_str(), &space) == 0;
  const double free = known ? static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) / kGiB : 0;
  if (file < 0) {
    findings->push_back({"folders", name, if_not,
                         fmt::format("{}: no file can be made: {}", path.string(), std::strerror(reason)),
                         "make it writable, or use another one"});
    return;
  }
  findings->push_back(
      {"folders", name, free < least_gib ? State::kWarning : State::kOk,
       fmt::format("{}: writable, {:.1f} GiB free", path.string(), free),
       free < least_gib ? fmt::format("less than {} GiB: results, checkpoints or shared memory may not fit", least_gib)
                        : ""});
}

void variables(const DoctorInput& input, std::vector<Finding>* findings) {
  constexpr std::array kRead = {"ASSAY_PLUGIN_PATH", "CUDA_VISIBLE_DEVICES", "GITHUB_STEP_SUMMARY", "TMPDIR"};
  for (const char* name : kRead) {
    const auto found = input.environment.find(name);
    findings->push_back(
        {"environment", name, State::kOk, found == input.environment.end() ? "not set" : found->second, ""});
  }
}

}  // namespace

void examine_machine(const DoctorInput& input, std::vector<Finding>* findings) {
  cpu(findings);
  memory(findings);
  limit(findings, "open files", RLIMIT_NOFILE, 256,
        "raise it (ulimit -n 1024): workers and checkpoints hold files open");
  limit(findings, "processes", RLIMIT_NPROC, 64, "raise it (ulimit -u): every worker is a process with threads");
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  folder(findings, "temporary", error ? "/tmp" : temporary, 0.5, State::kProblem);
  folder(findings, "output", input.output, 0.5, State::kWarning);
  folder(findings, "shared memory", "/dev/shm", 0.0625, State::kWarning);
  const char* locale = std::setlocale(LC_ALL, "");
  findings->push_back(
      {"environment", "locale", locale == nullptr ? State::kWarning : State::kOk,
       locale == nullptr ? "the locale that LANG or LC_ALL name does not exist here" : locale,
       locale == nullptr ? "install it, or set LC_ALL=C.UTF-8; numbers are read and written alike in any" : ""});
  std::setlocale(LC_ALL, "C");
  variables(input, findings);
}

}  // namespace assay::doctor
