#include "plugins/engines/process/process.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "assay/sdk.hpp"
#include "core/command/environment.h"
#include "core/command/log_tail.h"
#include "core/discover/arguments.h"
#include "core/golden/file.h"
#include "core/golden/text.h"
#include "plugins/engines/common/case_time.h"
#include "plugins/engines/process/launch.h"
#include "plugins/engines/process/output_file.h"
#include "plugins/engines/replay/record_result.h"

namespace assay::engines {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr size_t kLogLines = 20;      // of stderr in engine.log
constexpr size_t kLogBytes = 8192;    //
constexpr int kDefaultProcesses = 8;  // a node, as in Megatron-LM's harness
constexpr int64_t kMostProcesses = 1 << 20;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::map<std::string, std::string> environment_of(const ProcessOptions& options) {
  std::map<std::string, std::string> environment = command::own_environment();
  if (const auto& passed = options.pass_environment) {
    std::erase_if(environment,
                  [&](const auto& one) { return std::count(passed->begin(), passed->end(), one.first) == 0; });
  }
  for (const auto& [name, value] : options.environment) environment[name] = value;
  return environment;
}

std::string number(double value) {
  const std::string text = fmt::format("{}", value);
  return text;
}

TemplateVariable one(std::string value, const char* absent = nullptr) {
  TemplateVariable variable;
  if (value.empty() && absent != nullptr) variable.absent = absent;
  variable.words = {std::move(value)};
  return variable;
}

TemplateVariable several(std::vector<std::string> words) {
  TemplateVariable variable;
  variable.words = std::move(words);
  variable.several = true;
  return variable;
}

// In the place of what the record has of that name; its other members stay as they were written.
void set_extra(const std::string& name, const Json& value, RequestRecord* record) {
  std::erase_if(record->extra, [&](const auto& member) { return member.first == name; });
  record->extra.emplace_back(name, dump(value));
}

// To what the program itself counts, where it does.
void add_restarts(uint64_t restarts, RequestRecord* record) {
  Json counters;
  for (const auto& [name, json] : record->extra) {
    if (name == "engine_counters") counters = Json::parse(json, nullptr, false);
  }
  if (!counters.is_object()) counters = Json::object();
  counters["restarts"] = restarts;
  set_extra("engine_counters", counters, record);
}

// MODEL_ARGS but for the prompts: what is asked is no secret, whatever words it has.
std::vector<std::string> without_prompts(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  bool asked = false;
  for (const std::string& word : words) {
    if (word.starts_with("--")) asked = word == "--prompts" || word.starts_with("--prompts=");
    if (!asked) kept.push_back(word);
  }
  return kept;
}

Result<int> processes_of(const ProcessOptions& options, const std::map<std::string, std::string>& environment) {
  if (options.processes > 0) return options.processes;
  const auto given = environment.find("GPUS_PER_NODE");
  if (given == environment.end() || given->second.empty()) return kDefaultProcesses;
  const Result<int64_t> told = discover::parse_int(given->second);
  if (told && *told >= 1 && *told <= kMostProcesses) return static_cast<int>(*told);
  return invalid(
      fmt::format("environment variable GPUS_PER_NODE is '{}', expected a whole number from 1 to {}; option "
                  "processes goes before it",
                  given->second, kMostProcesses));
}

}  // namespace

Result<std::unique_ptr<ProcessEngine>> ProcessEngine::open(const assay_engine_config& config, const Host& host) {
  Result<ProcessOptions> options = parse_process_options(sdk::text(config.options));
  if (!options) return options.status();
  std::unique_ptr<ProcessEngine> engine(new ProcessEngine(*std::move(options), host));
  std::error_code code;
  if (engine->options_.facts.output.empty()) {
    std::string name = (fs::temp_directory_path(code) / "assay-process-XXXXXX").string();
    if (code || ::mkdtemp(name.data()) == nullptr) {
      return infra(fmt::format("engine process: no temporary folder {}; set TMPDIR", name));
    }
    engine->folder_ = name;
    engine->temporary_ = true;
  } else {
    engine->folder_ = fs::path(engine->options_.facts.output) / "process";
    fs::remove_all(engine->folder_, code);  // of an earlier run
    fs::create_directories(engine->folder_, code);
    if (code) return infra(fmt::format("{}: cannot be made: {}", engine->folder_.string(), code.message()));
  }
  if (Status fits = engine->check_command(); !fits.ok()) return fits;
  return engine;
}

ProcessEngine::ProcessEngine(ProcessOptions options, const Host& host)
    : options_(std::move(options)),
      host_(host),
      environment_(environment_of(options_)),
      redactor_(environment_),
      launches_(names_variable(options_.command, "launch")),
      opened_(Clock::now()) {
  redactor_.add(command::own_environment());  // what is not passed must not be shown either
  redactor_.add_words(options_.command);
  redactor_.add_words(without_prompts(options_.facts.model_args));
  redactor_.add_words({options_.facts.scripts.before, options_.facts.scripts.after});
  std::string words;
  for (const std::string& word : redactor_.words(options_.command)) words += (words.empty() ? "" : " ") + word;
  facts_ = dump(Json{{"command", words}});
}

ProcessEngine::~ProcessEngine() {
  std::error_code code;
  if (temporary_) fs::remove_all(folder_, code);
}

// Everything that can be wrong with the words is found before a request is there.
Status ProcessEngine::check_command() {
  if (options_.command.empty()) return {};
  if (launches_) {
    const Result<int> processes = processes_of(options_, environment_);
    if (!processes) return processes.status();
    processes_ = *processes;
  }
  Result<std::vector<std::string>> words = fill_in(options_.command, variables_of({}, paths_of("")), "command");
  return words.status();
}

ProcessEngine::Paths ProcessEngine::paths_of(const std::string& part) const {
  const fs::path folder = part.empty() ? folder_ : folder_ / part;
  return {.folder = folder,
          .prompts = folder / "prompts.jsonl",
          .output = folder / "output.json",
          .out = folder / "stdout.txt",
          .err = folder / "stderr.txt"};
}

std::string ProcessEngine::told_id(const Waiting& request) const {
  return std::to_string(static_cast<size_t>(options_.facts.first_id) + request.place);
}

TemplateVariables ProcessEngine::variables_of(const Waiting& first, const Paths& paths) const {
  const CaseFacts& facts = options_.facts;
  const char* no_case = "the engine was opened without a case";
  std::error_code code;
  const std::string here = options_.folder.empty() ? fs::current_path(code).string() : options_.folder;
  train::Job job;
  job.launcher = !options_.launcher.empty() ? options_.launcher : facts.launcher.empty() ? "torchrun" : facts.launcher;
  job.processes_per_node = processes_;
  job.folders.logs = (paths.folder / "logs").string();
  job.script = facts.script;
  job.script_is_program = names_variable(options_.command, "script") && train::starts_as_program(facts.script);
  TemplateVariable script = several(script_words(job, here, kProgramFolder));
  script.joined = true;
  if (script.words.empty()) script.absent = "the case has no ASSAY.script; name the script in the command";
  TemplateVariable prompt = one(first.text);
  TemplateVariable id = one(told_id(first));
  if (!options_.per_request) prompt.absent = id.absent = "it is of one request: set the option per_request";
  return {
      {"case", one(facts.name, no_case)},
      {"case_dir", one(facts.dir, no_case)},
      {"checkpoint", one(facts.checkpoint, "MODEL_ARGS have no --load")},
      {"config", one(facts.config, no_case)},
      {"folder", one(here)},
      {"id", std::move(id)},
      {"launch", several(launch_words(options_, job))},
      {"max_new_tokens", one(std::to_string(first.max_new_tokens))},
      {"model_args", several(facts.model_args)},
      {"output", one(paths.output.string())},
      {"prompt", std::move(prompt)},
      {"prompts", one(paths.prompts.string())},
      {"script", std::move(script)},
      {"seed", one(std::to_string(first.sampling.seed))},
      {"temperature", one(number(first.sampling.temperature))},
      {"tokenizer", one(facts.tokenizer, "MODEL_ARGS have no --tokenizer-model")},
      {"top_k", one(std::to_string(first.sampling.top_k))},
      {"top_n", one(std::to_string(first.top_n))},
      {"top_p", one(number(first.sampling.top_p))},
      {"work_dir", one(paths.folder.string())},
  };
}

Status ProcessEngine::submit(const assay_request& request) {
  if (options_.command.empty()) {
    return invalid(
        "options of engine process: command is not set; give the command that answers requests, or the script that the "
        "launch line of the case starts (ASSAY.script, --set TRAINING_SCRIPT_PATH=...)");
  }
  if (!queue_.empty() && request.id <= queue_.back().id) {
    return invalid(fmt::format("request id {} after {}, expected ascending ids", request.id, queue_.back().id));
  }
  queue_.push_back({.id = request.id,
                    .place = queue_.empty() ? 0 : queue_.back().place + 1,
                    .text = std::string(sdk::text(request.text)),
                    .ids = {request.ids.data, request.ids.data + request.ids.size},
                    .forced = request.forced.size > 0,
                    .cancelled = false,
                    .max_new_tokens = request.max_new_tokens,
                    .top_n = request.top_n,
                    .logprobs = (request.want & ASSAY_WANT_LOGPROBS) != 0,
                    .sampling = request.sampling});
  return {};
}

Status ProcessEngine::cancel(uint64_t id) {
  for (Waiting& waiting : queue_) {
    if (waiting.id != id || waiting.cancelled) continue;
    waiting.cancelled = true;
    return {};
  }
  return not_found(fmt::format("request id {}: not waiting", id));
}

Status ProcessEngine::reset() {
  queue_.clear();
  return {};
}

Status ProcessEngine::info(assay_engine_info* info) const {
  info->capabilities = kProcessCapabilities;
  if (ASSAY_KNOWS(info, facts)) info->facts = sdk::view(facts_);
  return {};
}

Status ProcessEngine::step(std::vector<EngineEvent>* events) {
  std::vector<Waiting> batch;
  while (!queue_.empty() && (batch.empty() || !options_.per_request)) {
    Waiting waiting = std::move(queue_.front());
    queue_.pop_front();
    if (waiting.cancelled) {
      events->push_back(failed_event(waiting.id, Status(StatusCode::kCancelled, "cancelled")));
    } else if (waiting.forced) {
      events->push_back(
          failed_event(waiting.id, unsupported("engine process: a command cannot be told which tokens to generate")));
    } else {
      batch.push_back(std::move(waiting));
    }
  }
  if (batch.empty()) return {};
  Result<Answers> answers = run(batch);
  if (!answers) {
    queue_.clear();
    return answers.status();
  }
  const auto every = static_cast<size_t>(options_.per_request ? 1 : options_.facts.output_every);
  Json extra = {
      {"throughput", nullptr}, {"mem-max-allocated-bytes", nullptr}, {"lifetime_prefill_token_count", nullptr}};
  for (const Quantity& quantity : answers->quantities) {
    const bool finite =
        std::all_of(quantity.values.begin(), quantity.values.end(), [](double v) { return std::isfinite(v); });
    if (quantity.values.empty() || !finite) continue;
    if (quantity.scalar) {
      extra[quantity.name] = quantity.values.front();
    } else {
      extra[quantity.name] = quantity.values;
    }
  }
  uint64_t restarts = answers->restarts;  // told once
  for (size_t i = 0; i < batch.size(); ++i) {
    const uint64_t id = batch[i].id;
    RequestRecord& record = answers->records[i];
    const bool kept = batch[i].place % every == 0 || i + 1 == batch.size();
    if (!answers->failures[i].empty()) {
      events->push_back(failed_event(id, invalid(fmt::format("the command says: {}", answers->failures[i]))));
    } else if (!record.id.empty()) {
      std::vector<std::string> notes;
      if (i == 0) {
        for (const auto& [name, value] : extra.items()) set_extra(name, value, &record);
      }
      if (restarts > 0) add_restarts(restarts, &record);
      Result<EngineResult> result = result_of(record, id, &notes);
      for (const std::string& note : notes) host_.log(ASSAY_LOG_WARN, note);
      if (!result) {
        events->push_back(failed_event(id, result.status()));
        continue;
      }
      if (!result->prompt && batch[i].ids.empty()) result->prompt = batch[i].text;
      if (result->prompt_ids.empty()) result->prompt_ids = batch[i].ids;
      restarts = 0;
      events->push_back(finished_event(*std::move(result)));
    } else if (!kept) {
      EngineResult nothing;  // --output-every-n-results: nobody looks at this one
      nothing.id = id;
      events->push_back(finished_event(std::move(nothing)));
    } else {
      const size_t answered = static_cast<size_t>(
          std::count_if(answers->records.begin(), answers->records.end(), [](const auto& r) { return !r.id.empty(); }));
      events->push_back(
          failed_event(id, invalid(fmt::format("the output of the command has no result of it; it has {} of {}",
                                               answered, batch.size()))));
    }
  }
  return {};
}

Result<Answers> ProcessEngine::run(const std::vector<Waiting>& batch) {
  const Paths paths = paths_of(options_.per_request ? fmt::format("{}", batch.front().id)
                               : parts_ > 0         ? fmt::format("again_{}", parts_)
                                                    : "");
  ++parts_;
  std::error_code code;
  fs::create_directories(paths.folder, code);
  Expected expected;
  for (const Waiting& request : batch) expected.ids.push_back(told_id(request));
  if (Status written = write_prompts(batch, paths.prompts); !written.ok()) return written;
  Result<std::vector<std::string>> words = fill_in(options_.command, variables_of(batch.front(), paths), "command");
  if (!words) return words.status();
  command::CommandOptions options = command_options(paths);
  options.argv = *std::move(words);
  // The output is a file where the words name one: {output}, or the --output-path of MODEL_ARGS.
  fs::path file;
  if (names_path(options.argv, paths.output.string())) {
    file = paths.output;
  } else if (names_path(options.argv, options_.facts.output_path)) {
    file = options_.folder / fs::path(options_.facts.output_path);  // relative: seen from where the command runs
  }
  if (!file.empty()) {
    if (Status removed = remove_earlier(file); !removed.ok()) return removed;
  }
  if (launches_) {
    fs::create_directories(paths.folder / "logs", code);
    add_launch_environment(options.folder.empty() ? fs::current_path(code).string() : options.folder.string(),
                           &options.environment);
  }
  // An environment's own LOG_DIR is of another program: the harness sets it anew, too.
  if (!options_.facts.scripts.empty()) options.environment.erase("LOG_DIR");
  if (Status can = run_around(options_.facts.scripts, paths.folder / "logs", &options); !can.ok()) return can;
  if (Status noted = note_command(options, paths.folder / "command.json"); !noted.ok()) return noted;
  const int attempts = restarts_in("", paths.folder / "logs").count;  // of an earlier command with this folder
  const Result<command::CommandEnd> end = command::run_command(options);
  if (!end) return infra(redactor_.text(end.status().message()));
  host_.log(ASSAY_LOG_INFO,
            fmt::format("the command ended: {}, after {:.2f} s, at most {:.1f} MB of anonymous memory; files in {}",
                        end->text(), end->seconds, static_cast<double>(end->peak_memory) / 1e6, paths.folder.string()));
  const Restarts restarts = restarts_of(paths.folder / "logs", {paths.err, paths.out}, attempts);
  const std::string told = told_restarts(restarts);
  Result<Answers> answers = answers_of(*end, options, paths, file, expected);
  if (!answers) return Status(answers.status().code(), answers.status().message() + told);
  answers->restarts = static_cast<uint64_t>(restarts.count);
  for (std::string& failure : answers->failures) failure += failure.empty() ? "" : told;
  return answers;
}

Result<Answers> ProcessEngine::answers_of(const command::CommandEnd& end, const command::CommandOptions& options,
                                          const Paths& paths, const fs::path& file, const Expected& expected) const {
  Status brought;
  if (!file.empty() && file != paths.output) brought = bring_output(file, paths.output);
  const fs::path read = file.empty() ? paths.out : paths.output;
  const std::string name = file.empty() ? "stdout of the command" : file.string();
  Result<std::string> text =
      end.ok() ? read_file(read.string()) : Result<std::string>("");  // numbers are read as written
  redact(paths.folder);
  log_tail(paths.err, "stderr");
  if (Status ended = outcome_of(end, options); !ended.ok()) return ended;
  if (!brought.ok()) return brought;
  if (!text && text.status().code() == StatusCode::kNotFound) {
    return invalid(fmt::format("the command ended well but wrote no {}", file.string()));
  }
  if (!text) return text.status();
  Result<Answers> answers = read_answers(*text, name, options_.format, expected);
  if (!answers) {
    // Read again without secrets: a message that is cut may show part of one, which nothing would find there.
    const Result<Answers> clean = read_answers(redactor_.text(*text), name, options_.format, expected);
    const Status& why = clean ? answers.status() : clean.status();
    return Status(answers.status().code(), redactor_.text(why.message()));
  }
  for (const std::string& note : answers->notes) host_.log(ASSAY_LOG_WARN, name + ": " + redactor_.text(note));
  for (std::string& failure : answers->failures) failure = redactor_.text(failure);
  for (size_t i = 0; i < answers->records.size(); ++i) hide_secrets(&answers->records[i], &answers->failures[i]);
  return answers;
}

// What is judged and kept is what was said, or nothing.
void ProcessEngine::hide_secrets(RequestRecord* record, std::string* failure) const {
  for (std::optional<std::string>* told : {&record->prompt, &record->text}) {
    if (!*told) continue;
    std::string clean = redactor_.text(**told);
    if (clean != **told && failure->empty()) {
      *failure = fmt::format(
          "{}, which holds the value of a variable with a secret's name, so that it can be neither judged nor kept; "
          "give the command another value, or the variable another name",
          text::quoted(clean, 60));
    }
    **told = std::move(clean);
  }
}

command::CommandOptions ProcessEngine::command_options(const Paths& paths) const {
  command::CommandOptions options;
  options.environment = environment_;
  options.folder = options_.folder;
  options.output = paths.out;
  options.errors = paths.err;
  options.output_limit = static_cast<uint64_t>(options_.output_limit);
  options.kill_grace = Milliseconds(static_cast<int64_t>(options_.kill_grace * 1000));
  options.memory_limit =
      static_cast<uint64_t>(options_.memory_limit > 0 ? options_.memory_limit : options_.facts.memory_limit);
  if (options_.facts.memory_limit > 0 && options_.memory_limit > options_.facts.memory_limit) {
    options.memory_limit = static_cast<uint64_t>(options_.facts.memory_limit);
  }
  // Of the case's time, what earlier commands took is gone; its end is seen to here, so that the verdict has the words
  // of the command.
  double seconds = options_.time_limit;
  if (const double whole = options_.facts.time_limit_s; whole > 0) {
    const double spent = std::chrono::duration<double>(Clock::now() - opened_).count();
    const double reserve = reserve_of(whole);
    const double left = std::max(whole - reserve - spent, 0.001);
    seconds = seconds > 0 ? std::min(seconds, left) : left;
    options.kill_grace = std::min(options.kill_grace, Milliseconds(static_cast<int64_t>(reserve * 500)));
  }
  options.time_limit = Milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
  options.cancelled = [host = host_] { return host.cancelled(); };
  return options;
}

Status ProcessEngine::outcome_of(const command::CommandEnd& end, const command::CommandOptions& options) const {
  if (end.ok()) {
    if (end.leftovers + end.survivors > 0) host_.log(ASSAY_LOG_WARN, "the command: " + end.text());
    return {};
  }
  std::string tail = command::last_lines(options.errors, redactor_);
  const char* from = "stderr";
  if (tail.empty()) {
    tail = command::last_lines(options.output, redactor_);
    from = "stdout";
  }
  const std::string words = redactor_.word(program_of(options.argv));
  std::string message = fmt::format("the command {} after {:.1f} s: {}; {}", words, end.seconds, end.text(),
                                    tail.empty() ? "it wrote nothing" : fmt::format("end of its {}: {}", from, tail));
  message = redactor_.text(message);
  using command::Limit;
  switch (end.limit) {
    case Limit::kCancelled:
      return {StatusCode::kCancelled, std::move(message)};
    case Limit::kTime:
    case Limit::kMemory:
    case Limit::kOutput:
      return exhausted(std::move(message));
    default:
      return internal(std::move(message));
  }
}

void ProcessEngine::log_tail(const fs::path& file, const char* name) const {
  const std::string lines = command::last_lines(file, redactor_, kLogLines, kLogBytes);
  if (!lines.empty()) host_.log(ASSAY_LOG_INFO, fmt::format("end of its {}: {}", name, lines));
}

void ProcessEngine::redact(const fs::path& folder) const {
  if (Status done = redactor_.folder(folder); !done.ok()) host_.log(ASSAY_LOG_ERROR, done.message());
}

}  // namespace assay::engines
