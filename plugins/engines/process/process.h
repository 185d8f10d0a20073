// Engine process: any command that reads prompts and writes results, run to its end as a tree of processes.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "core/command/command.h"
#include "core/command/redact.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/common/template_words.h"
#include "plugins/engines/process/options.h"
#include "plugins/engines/process/output.h"

namespace assay::engines {

// What an output may hold; what it does hold decides metric by metric.
inline constexpr uint64_t kProcessCapabilities = ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS |
                                                 ASSAY_CAP_ROUTING | ASSAY_CAP_BATCH | ASSAY_CAP_SEED | ASSAY_CAP_TEXT |
                                                 ASSAY_CAP_TOKENS | ASSAY_CAP_TRAIN;

// Restarts that a launcher of torch's elastic kind told of: lines of its log, and attempt folders below `logs`.
struct Restarts {
  int count = 0;
  std::vector<std::string> lines;  // one a restart where the log tells
};
Restarts restarts_in(const std::string& log, const std::filesystem::path& logs);

// Methods mean what assay_engine_table says. A step runs one command: for everything that waits, or for one request
// with `per_request`; it fails with kExhausted at a limit, kInternal where the command ended badly, kInfra where it
// could not be started, kInvalid where its output cannot be used. Files: prompts.jsonl, output.json, stdout.txt,
// stderr.txt and command.json, in folder process of the case's output folder. Restarts by the launcher are told in
// engine_counters.restarts of one result, or in the failure. One thread at a time.
class ProcessEngine {
 public:
  // kInvalid for bad options, and for template variables that do not exist or have no value.
  static Result<std::unique_ptr<ProcessEngine>> open(const assay_engine_config& config, const Host& host);
  ~ProcessEngine();

  Status submit(const assay_request& request);
  Status cancel(uint64_t id);
  Status step(std::vector<EngineEvent>* events);
  size_t pending() const { return queue_.size(); }
  Status reset();
  Status info(assay_engine_info* info) const;
  // Runs the job's launch line (launch.h), or its command, and between its two scripts where it has them. What was run
  // is noted beside the log folder: <logs>.command.json.
  Status train(const assay_training& training, assay_training_result* result);

 private:
  struct Waiting {
    uint64_t id = 0;   // the host's word for it
    size_t place = 0;  // of the call's requests: the command knows it as first_id + place
    std::string text;
    std::vector<int32_t> ids;
    bool forced = false;
    bool cancelled = false;
    int32_t max_new_tokens = 0;
    int32_t top_n = 0;
    bool logprobs = false;
    assay_sampling sampling = {};
  };
  struct Paths {
    std::filesystem::path folder;
    std::filesystem::path prompts;
    std::filesystem::path output;
    std::filesystem::path out;
    std::filesystem::path err;
  };

  ProcessEngine(ProcessOptions options, const Host& host);

  Paths paths_of(const std::string& part) const;
  std::string told_id(const Waiting& request) const;  // in prompts, results and {id}
  TemplateVariables variables_of(const Waiting& first, const Paths& paths) const;
  Status check_command();  // and finds how many processes a launch line starts
  Result<Answers> run(const std::vector<Waiting>& batch);
  // `file`: where the output is, for paths.output; empty: stdout.
  Result<Answers> answers_of(const command::CommandEnd& end, const command::CommandOptions& options, const Paths& paths,
                             const std::filesystem::path& file, const Expected& expected) const;
  // Those that `files` tell of; else those that happened since `logs` had attempt folders of so many.
  Restarts restarts_of(const std::filesystem::path& logs, const std::vector<std::filesystem::path>& files,
                       int attempts) const;
  // "; restart 1: LINE", for each; they are logged too. "" without any.
  std::string told_restarts(const Restarts& restarts) const;
  Status write_prompts(const std::vector<Waiting>& batch, const std::filesystem::path& file) const;
  // Fails with kInfra; `from` is then still there.
  Status bring_output(const std::filesystem::path& from, const std::filesystem::path& to) const;
  command::CommandOptions command_options(const Paths& paths) const;
  void hide_secrets(RequestRecord* record, std::string* failure) const;
  Status note_command(const command::CommandOptions& options, const std::filesystem::path& file) const;
  Status outcome_of(const command::CommandEnd& end, const command::CommandOptions& options) const;
  void log_tail(const std::filesystem::path& file, const char* name) const;
  void redact(const std::filesystem::path& folder) const;  // every file that is kept there or below

  ProcessOptions options_;
  Host host_;
  std::map<std::string, std::string> environment_;  // of commands
  command::Redactor redactor_;
  std::filesystem::path folder_;  // where files go
  bool temporary_ = false;        // folder_ is removed at the end
  bool launches_ = false;         // the command names {launch}
  int processes_ = 0;             // that it starts on a node
  std::string facts_;             // of info()
  std::string training_message_;  // of the last training
  std::chrono::steady_clock::time_point opened_;
  std::deque<Waiting> queue_;
  size_t parts_ = 0;  // commands that were run
};

}  // namespace assay::engines
