// Training programs, started as Megatron-LM's harness starts them.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <system_error>

#include "assay/sdk.hpp"
#include "core/train/job.h"
#include "plugins/engines/process/launch.h"
#include "plugins/engines/process/process.h"
#include "plugins/engines/process/scripts.h"

namespace assay::engines {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const ProcessOptions& options, const train::Job& job, const fs::path& folder) {
  std::vector<std::string> words = job.command;
  if (words.empty()) {
    words = launch_words(options, job);
    const std::vector<std::string> script = script_words(job, folder, kProgramFolder);
    words.insert(words.end(), script.begin(), script.end());
  }
  words.insert(words.end(), job.arguments.begin(), job.arguments.end());
  return words;
}

// The smaller of two limits, 0 being none.
template <typename Number>
Number smaller(Number a, Number b) {
  return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
}

// What the options say of every command holds of a training program, too.
Status apply_options(const ProcessOptions& options, train::Job* job) {
  if (!options.command.empty()) {
    return invalid(
        "engine process: option command is for requests; a training program is started by its launch line: options "
        "launcher, torchrun, ft_launcher and processes change that");
  }
  if (!options.launcher.empty()) job->launcher = options.launcher;
  if (options.processes > 0) job->processes_per_node = options.processes;
  if (job->folder.empty()) job->folder = options.folder;
  job->time_limit_s = smaller(job->time_limit_s, options.time_limit);
  job->memory_limit = smaller(job->memory_limit, static_cast<uint64_t>(options.memory_limit));
  return {};
}

// Beside the logs, not among them: it holds the scripts, and a script that searches the logs would find its own text.
fs::path record_beside(const fs::path& logs) {
  const fs::path folder = logs.has_filename() ? logs : logs.parent_path();
  return folder.string() + ".command.json";
}

}  // namespace

Status ProcessEngine::train(const assay_training& training, assay_training_result* result) {
  Result<train::Job> job = train::parse_job(sdk::text(training.job));
  if (!job) return job.status();
  if (Status fits = apply_options(options_, &*job); !fits.ok()) return fits;
  const fs::path logs = job->folders.logs.empty() ? folder_ / "logs" : fs::path(job->folders.logs);
  job->folders.logs = logs.string();
  std::error_code code;
  fs::create_directories(logs, code);
  if (code) return infra(fmt::format("{}: cannot be made: {}", logs.string(), code.message()));
  const fs::path folder = fs::absolute(job->folder.empty() ? fs::current_path(code) : fs::path(job->folder), code);
  command::CommandOptions options;
  options.argv = words_of(options_, *job, folder);
  options.environment = environment_;
  add_launch_environment(folder.string(), &options.environment);
  options.environment["LOG_DIR"] = logs.string();
  for (const auto& [name, value] : job->environment) options.environment[name] = value;
  const Scripts scripts{.before = job->before_script, .after = job->after_script};
  if (Status can = run_around(scripts, logs, &options); !can.ok()) return can;
  redactor_.add(options.environment);
  redactor_.add_words(job->arguments);
  redactor_.add_words(job->command);
  redactor_.add_words({scripts.before, scripts.after});
  options.folder = job->folder;
  options.output = logs / fmt::format("run_{}.stdout.txt", training.run);
  options.errors = logs / fmt::format("run_{}.stderr.txt", training.run);
  options.time_limit = std::chrono::milliseconds(static_cast<int64_t>(job->time_limit_s * 1000));
  options.memory_limit = job->memory_limit;
  options.output_limit = static_cast<uint64_t>(options_.output_limit);
  options.kill_grace = std::chrono::milliseconds(static_cast<int64_t>(options_.kill_grace * 1000));
  options.cancelled = [host = host_] { return host.cancelled(); };
  if (Status noted = note_command(options, record_beside(logs)); !noted.ok()) return noted;
  const int attempts = restarts_in("", logs).count;  // of an earlier run with the same log folder
  const Result<command::CommandEnd> end = command::run_command(options);
  if (!end) return infra(redactor_.text(end.status().message()));
  redact(logs);  // those of every rank included
  const Restarts restarts = restarts_of(logs, {options.errors, options.output}, attempts);
  const std::string told = told_restarts(restarts);
  const Status outcome = outcome_of(*end, options);
  if (outcome.code() == StatusCode::kCancelled) return outcome;
  training_message_ = (outcome.ok() ? end->text() : outcome.message()) + told;
  std::replace(training_message_.begin(), training_message_.end(), '\n', ' ');
  host_.log(outcome.ok() ? ASSAY_LOG_INFO : ASSAY_LOG_ERROR, training_message_);
  const bool limited = end->limit != command::Limit::kNone;
  result->exit_code = end->signal != 0 || limited ? -1 : end->code;
  result->signal = end->signal != 0 ? end->signal : limited ? SIGKILL : 0;
  result->restarts = restarts.count;
  if (ASSAY_KNOWS(result, message)) result->message = sdk::view(training_message_);
  return {};
}

}  // namespace assay::engines
