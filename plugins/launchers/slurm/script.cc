#include "plugins/launchers/slurm/script.h"

#include <cmath>
#include <cstdio>

#include "plugins/engines/common/template_words.h"

namespace assay::launchers {
namespace {

constexpr uint64_t kMinutesOfDay = 24 * 60;

// A value as sbatch reads it from a script: in double quotes where it holds a blank or more.
std::string directive_value(const std::string& value) {
  if (value.find_first_of(" \t\"'\\#") == std::string::npos) return value;
  std::string made = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + "\"";
}

// A path in which Slurm replaces nothing.
std::string plain_path(const std::filesystem::path& path) {
  std::string made;
  for (const char c : path.string()) made += c == '%' ? "%%" : std::string(1, c);
  return made;
}

// `text` was checked with the profile.
std::string with_count(const std::string& text, uint32_t count) {
  return engines::fill_in({text}, {{"count", {{std::to_string(count)}}}}, "gres")->front();
}

class Script {
 public:
  void option(const std::string& name, const std::string& value) {
    if (!value.empty()) text_ += "#SBATCH --" + name + "=" + directive_value(value) + "\n";
  }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_ = "#!/bin/bash\n";
};

}  // namespace

std::filesystem::path end_file(const std::filesystem::path& folder, const Job& job, size_t task) {
  return folder / (job.name + "." + std::to_string(task) + ".end");
}

std::string slurm_time(double seconds) {
  const uint64_t minutes = static_cast<uint64_t>(std::ceil(seconds / 60));
  if (minutes < kMinutesOfDay) return std::to_string(std::max<uint64_t>(minutes, 1));
  char text[64];
  std::snprintf(text, sizeof(text), "%llu-%02llu:%02llu:00", static_cast<unsigned long long>(minutes / kMinutesOfDay),
                static_cast<unsigned long long>(minutes % kMinutesOfDay / 60),
                static_cast<unsigned long long>(minutes % 60));
  return text;
}

std::string batch_script(const SlurmProfile& profile, const Job& job, const std::filesystem::path& folder) {
  Script script;
  script.option("job-name", job.name);
  script.option("array", "0-" + std::to_string(job.tasks.size() - 1) +
                             (job.most_at_once > 0 ? "%" + std::to_string(job.most_at_once) : ""));
  script.option("nodes", "1");
  script.option("ntasks", "1");
  script.option("output", plain_path(folder / job.name) + ".%a.slurm.log");  // what Slurm has to say
  script.option("open-mode", "append");
  script.option("partition", profile.partition);
  script.option("account", profile.account);
  script.option("qos", profile.qos);
  script.option("constraint", profile.constraint);
  script.option("reservation", profile.reservation);
  script.option("nodelist", profile.nodelist);
  script.option("exclude", profile.exclude);
  script.option("time", !profile.time.empty() ? profile.time : job.seconds > 0 ? slurm_time(job.seconds) : "");
  constexpr uint64_t kMebibyte = 1 << 20;
  script.option("mem", !profile.mem.empty() ? profile.mem
                       : job.memory > 0     ? std::to_string((job.memory + kMebibyte - 1) / kMebibyte) + "M"
                                            : "");
  if (job.cpus > 0) script.option("cpus-per-task", std::to_string(job.cpus));
  if (job.devices > 0 && profile.devices == "gres") script.option("gres", with_count(profile.gres, job.devices));
  if (job.devices > 0 && profile.devices == "gpus-per-task") {
    script.option("gpus-per-task", std::to_string(job.devices));
  }
  script.option("export", profile.exported);
  script.line(profile.requeue ? "#SBATCH --requeue" : "#SBATCH --no-requeue");
  for (const std::string& option : profile.extra) script.line("#SBATCH " + option);
  script.line("case \"$SLURM_ARRAY_TASK_ID\" in");
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    script.line(std::to_string(i) + ") log=" + shell_quoted(task.log) +
                " end=" + shell_quoted(end_file(folder, job, i).string()));
    script.line("  set -- " + shell_quoted(task.argv) + " ;;");
  }
  script.line("*) echo \"no task $SLURM_ARRAY_TASK_ID in this job\" >&2; exit 64 ;;");
  script.line("esac");
  script.line("rm -f \"$end\"");
  for (const std::string& before : profile.before) script.line(before);
  script.line(export_lines(job) + "\"$@\" >>\"$log\" 2>&1 </dev/null");
  script.line("code=$?");
  script.line("echo $code >\"$end.part\" && mv \"$end.part\" \"$end\"");
  script.line("exit $code");
  return script.take();
}

}  // namespace assay::launchers
