#include "core/train/case_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/discover/arguments.h"
#include "core/golden/text.h"
#include "core/train/arguments.h"
#include "core/train/uncompared.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<const char*, TestType>, 6> kTypes = {
    {{"regular", TestType::kRegular},
     {"frozen-start", TestType::kFrozenStart},
     {"ckpt-resume", TestType::kCkptResume},
     {"frozen-resume", TestType::kFrozenResume},
     {"checkpoint-consistency", TestType::kCheckpointConsistency},
     {"release", TestType::kRelease}}};

TestType type_of(const std::string& word) {
  for (const auto& [name, type] : kTypes) {
    if (word == name) return type;
  }
  return TestType::kRegular;
}

bool says(const std::string* text, std::string_view word) { return text != nullptr && *text == word; }

constexpr int kMostProcesses = 1 << 20;
constexpr int kMostRuns = std::numeric_limits<int>::max();
constexpr int kMostWait = 1 << 20;  // seconds
constexpr int64_t kMostSteps = int64_t{1} << 40;
constexpr int64_t kMostSeconds = int64_t{1} << 40;  // since 1970

// `name` is what the number is of.
Result<int64_t> whole_number(const std::string& name, std::string_view text, int64_t least, int64_t most) {
  Result<int64_t> number = discover::parse_int(text);
  if (number && *number >= least && *number <= most) return number;
  return invalid(
      fmt::format("{} '{}': expected a whole number from {} to {}", name, text::printable(text), least, most));
}

class Planner {
 public:
  Planner(const TestCase& test, const discover::Variables& variables, const PlanRequest& request)
      : test_(test), variables_(variables), request_(request) {}

  Result<CasePlan> run() {
    if (Status begun = begin(); !begun.ok()) return begun;
    if (Status told = numbers(); !told.ok()) return told;
    if (Status changed = change(); !changed.ok()) return changed;
    const Status planned = plan_.type == TestType::kCheckpointConsistency && !plan_.rl ? plan_each() : plan_runs();
    if (!planned.ok()) return planned;
    std::sort(plan_.made.begin(), plan_.made.end());
    plan_.made.erase(std::unique(plan_.made.begin(), plan_.made.end()), plan_.made.end());
    return std::move(plan_);
  }

 private:
  // A variable of --set: files go where the caller says, and nowhere by chance of the environment.
  std::string given(const char* name) const {
    const auto found = variables_.set.find(name);
    if (found == variables_.set.end() || found->second.empty()) return "";
    const fs::path path = fs::absolute(found->second);
    return (path.has_filename() ? path : path.parent_path()).string();  // "/x/" is /x, not what is in it
  }
  std::string below(const std::string& name) const { return (fs::path(request_.folder) / name).string(); }

  Status begin() {
    plan_ = facts_of(test_);
    plan_.repeat = request_.repeat;
    plan_.folder = request_.folder;
    plan_.record = says(variables_.find("RECORD_CHECKPOINTS"), "true");
    plan_.uncompared = why_uncompared(test_, variables_);
    if (const Result<JudgeRules> rules = plan_.rules(); !rules) return rules.status().with(test_.config);
    if (const std::string* frozen = variables_.find("CHECKPOINT_LOAD_PATH"); frozen != nullptr && !frozen->empty()) {
      plan_.frozen = fs::absolute(*frozen).string();
    }
    if ((!test_.before_script.empty() || !test_.after_script.empty()) && !request_.allow_scripts) {
      return unsupported(
          fmt::format("{}: the case has {} {}, which runs as a shell script of this machine: look at it, "
                      "then allow it with --allow-scripts",
                      test_.config, test_.before_script.empty() ? "an" : "a",
                      test_.before_script.empty() ? "AFTER_SCRIPT" : "BEFORE_SCRIPT"));
    }
    if (const std::string* script = variables_.find("TRAINING_SCRIPT_PATH")) {
      base_.script = *script;
    } else if (test_.assay.script) {
      base_.script = *test_.assay.script;
    } else {
      return invalid(
          test_.config +
          ": which program trains is not said: give it with --set TRAINING_SCRIPT_PATH=pretrain_gpt.py, or in "
          "ASSAY.script");
    }
    nemo_ = starts_as_program(base_.script);
    base_.script_is_program = nemo_;
    base_.name = test_.name;
    base_.repeat = request_.repeat;
    base_.launcher = test_.launcher == "ft_launcher" ? "ft_launcher" : "torchrun";
    base_.before_script = test_.before_script;
    base_.after_script = test_.after_script;
    save_ = request_.repeat == 1 ? given("CHECKPOINT_SAVE_PATH") : "";
    if (save_.empty()) save_ = below("checkpoints");
    base_.folders.output = given("OUTPUT_PATH").empty() ? request_.folder : given("OUTPUT_PATH");
    return {};
  }

  // The first of these variables that is set; `value` stays what it is where none is.
  Status number(std::initializer_list<const char*> names, int least, int most, int* value) {
    for (const char* name : names) {
      const std::string* text = variables_.find(name);
      if (text == nullptr || text->empty()) continue;
      const Result<int64_t> number = whole_number(name, *text, least, most);
      if (!number) return number.status();
      *value = static_cast<int>(*number);
      return {};
    }
    return {};
  }

  Status numbers() {
    if (Status s = number({"GPUS_PER_NODE"}, 1, kMostProcesses, &base_.processes_per_node); !s.ok()) return s;
    if (Status s = number({"NUM_NODES", "SLURM_NNODES"}, 1, kMostProcesses, &base_.nodes); !s.ok()) return s;
    if (Status s = number({"SLURM_NODEID", "NODE_RANK"}, 0, base_.nodes - 1, &base_.node_rank); !s.ok()) return s;
    if (Status s = number({"MASTER_PORT"}, 0, 65535, &base_.master_port); !s.ok()) return s;
    if (const std::string* address = variables_.find("MASTER_ADDR"); address != nullptr && !address->empty()) {
      base_.master_address = *address;
    }
    if (base_.nodes == 1) return {};
    int seconds = 900;
    if (Status s = number({"RUN_CI_BARRIER_TIMEOUT"}, 1, kMostWait, &seconds); !s.ok()) return s;
    plan_.meeting.seconds = seconds;
    // The next case of the run must not find the barriers of this one open.
    const fs::path own = fs::path(request_.id.empty() ? test_.name : request_.id).relative_path();
    if (const std::string barriers = given("RUN_CI_BARRIER_DIR"); !barriers.empty()) {
      plan_.meeting.folder = (barriers / own).string();
      return {};
    }
    std::string id = "default";
    for (const char* name : {"CI_JOB_ID", "SLURM_JOB_ID", "RUN_CI_BARRIER_ID"}) {
      if (const std::string* text = variables_.find(name); text != nullptr && !text->empty()) id = *text;
    }
    if (given("OUTPUT_PATH").empty()) {
      return invalid("NUM_NODES " + std::to_string(base_.nodes) +
                     ": the nodes meet in a folder that all of them see: give it with --set OUTPUT_PATH=...");
    }
    plan_.meeting.folder = (fs::path(base_.folders.output) / ".run_ci_barriers" / id / own).string();
    return {};
  }

  Status change() {
    changes_ = {.nemo = nemo_, .lightweight = is_lightweight(test_, variables_), .rl = plan_.rl, .type = plan_.type};
    ModelArgs args = test_.model_args;
    const Result<int64_t> iters = change_arguments(changes_, test_.config, &args);
    if (!iters) return iters.status();
    plan_.train_iters = *iters;
    return {};
  }

  // Everything of a run but its folders.
  Status add_run(int number, JobFolders folders) {
    Job job = base_;
    job.run = number;
    job.folders = std::move(folders);
    job.folders.output = base_.folders.output;
    job.folders.logs = logs(number);
    discover::Variables variables = variables_;
    variables.set["CHECKPOINT_LOAD_PATH"] = job.folders.load;
    variables.set["CHECKPOINT_SAVE_PATH"] = job.folders.save;
    variables.set["TENSORBOARD_PATH"] = job.folders.tensorboard;
    variables.set["OUTPUT_PATH"] = job.folders.output;
    variables.set["LOG_DIR"] = job.folders.logs;
    variables.set["REPEAT"] = std::to_string(request_.repeat);
    variables.set["RUN_NUMBER"] = std::to_string(number);
    variables.set["GPUS_PER_NODE"] = std::to_string(job.processes_per_node);
    variables.set["ENABLE_LIGHTWEIGHT_MODE"] = is_lightweight(test_, variables_) ? "true" : "false";
    variables.set["RECORD_CHECKPOINTS"] = plan_.record ? "true" : "false";
    variables.set["ONE_LOGGER_JOB_CATEGORY"] = plan_.type == TestType::kRelease ? "production" : "test";
    variables.set.try_emplace("WANDB_API_KEY", "");
    if (base_.nodes > 1) variables.set["RUN_CI_PHASE_INDEX"] = std::to_string((request_.repeat - 1) * 10 + number);
    for (const auto& [name, value] : variables.set) job.environment[name] = value;
    TestCase copy;
    copy.config = test_.config;
    copy.env_vars = test_.env_vars;
    if (Status done = discover::substitute_env_vars(copy, variables); !done.ok()) return done;
    for (const EnvVar& variable : copy.env_vars) job.environment[variable.name] = variable.value;
    Result<std::vector<std::string>> words = argument_words(test_, variables, number, changes_);
    if (!words) return words.status();
    Result<std::vector<std::string>> limit = exit_duration();
    if (!limit) return limit.status();
    job.arguments = *std::move(limit);
    job.arguments.insert(job.arguments.end(), words->begin(), words->end());
    for (const std::string& folder : {job.folders.save, job.folders.tensorboard, job.folders.logs}) {
      plan_.made.push_back(folder);
    }
    plan_.runs.push_back(std::move(job));
    return {};
  }

  // Inside a Slurm job the program ends in time to save: 15 minutes before the end, of short jobs after 4/5 of it.
  Result<std::vector<std::string>> exit_duration() const {
    constexpr int64_t kBuffer = 15;  // minutes
    constexpr std::array<const char*, 2> kNames = {"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"};
    std::array<int64_t, 2> times = {};  // seconds
    for (size_t i = 0; i < times.size(); ++i) {
      const std::string* text = variables_.find(kNames[i]);
      if (nemo_ || text == nullptr || text->empty()) return std::vector<std::string>();
      const Result<int64_t> time = whole_number(kNames[i], *text, 0, kMostSeconds);
      if (!time) return time.status();
      times[i] = *time;
    }
    const int64_t window = (times[1] - times[0]) / 60;
    const int64_t minutes = window > kBuffer ? window - kBuffer : std::max<int64_t>(window * 4 / 5, 1);
    return std::vector<std::string>{"--exit-duration-in-mins", std::to_string(minutes)};
  }

  // Nodes share OUTPUT_PATH, and nobody may write over or rewrite what another still writes.
  std::string logs(int run) const {
    if (given("OUTPUT_PATH").empty()) return below(fmt::format("run_{}/logs", run));
    const fs::path all = fs::path(given("OUTPUT_PATH")) / "logs" / std::to_string(request_.repeat);
    return base_.nodes == 1 ? all.string() : (all / fmt::format("node_{}", base_.node_rank)).string();
  }

  std::string tensorboard(int run) const {
    const std::string path = given("TENSORBOARD_PATH");
    if (path.empty()) return below(fmt::format("run_{}/tensorboard", run));
    const fs::path file(path);
    const fs::path own = file.parent_path() / std::to_string(request_.repeat) / file.filename();
    return plan_.resumes() ? (own / fmt::format("run_{}", run)).string() : own.string();
  }

  // TEST_TYPE says that it begins from a checkpoint: none given would be one that is empty.
  Status check_frozen(bool loads) const {
    if (!loads || !plan_.frozen.empty()) return {};
    return invalid(fmt::format("{}: TEST_TYPE {} loads a checkpoint: give it with --set CHECKPOINT_LOAD_PATH=...",
                               test_.config, test_.test_type));
  }

  Status plan_runs() {
    const bool loads = plan_.type == TestType::kFrozenStart || plan_.type == TestType::kRelease;
    if (Status given = check_frozen(loads || (plan_.type == TestType::kFrozenResume && !plan_.rl)); !given.ok()) {
      return given;
    }
    const std::string nothing = below("nothing_to_load");
    plan_.made.push_back(nothing);
    Status added = add_run(1, {.tensorboard = tensorboard(1),
                               .load = loads && !plan_.frozen.empty() ? plan_.frozen : nothing,
                               .save = save_});
    if (!added.ok() || plan_.rl || !plan_.resumes()) return added;
    const bool frozen = plan_.type == TestType::kFrozenResume;
    return add_run(2, {.tensorboard = tensorboard(2),
                       .load = frozen ? plan_.frozen : below("resume_from"),
                       .save = frozen ? below("checkpoints_2") : save_});
  }

  static bool names_checkpoint(const ModelArgs& args) {
    return std::any_of(args.entries.begin(), args.entries.end(), [](const ModelArg& arg) {
      return arg.key == "--load" && arg.text.find("CHECKPOINT_LOAD_PATH") != std::string::npos;
    });
  }

  // A run for each of MODEL_ARGS, MODEL_ARGS_2 ...
  Status plan_each() {
    const bool loads = names_checkpoint(test_.model_args) ||
                       std::any_of(test_.further_model_args.begin(), test_.further_model_args.end(), names_checkpoint);
    if (Status given = check_frozen(loads); !given.ok()) return given;
    std::vector<std::pair<int, const ModelArgs*>> all = {{1, &test_.model_args}};
    for (const ModelArgs& args : test_.further_model_args) {
      const Result<int64_t> number = whole_number(args.name, args.name.substr(args.name.rfind('_') + 1), 2, kMostRuns);
      if (!number) return number.status().with(test_.config);
      for (const auto& [taken, other] : all) {
        if (taken != *number) continue;
        return invalid(fmt::format("{}: {} and {} are both run {}: give each a number of its own", test_.config,
                                   other->name, args.name, taken));
      }
      all.emplace_back(static_cast<int>(*number), &args);
    }
    const int processes = base_.processes_per_node;
    const std::string nothing = below("nothing_to_load");
    plan_.made.push_back(nothing);
    for (const auto& [number, args] : all) {
      const auto own =
          std::find_if(test_.model_env_vars.begin(), test_.model_env_vars.end(),
                       [&, name = args->name](const EnvVar& v) { return v.name == name + ".GPUS_PER_NODE"; });
      base_.processes_per_node = processes;
      if (own != test_.model_env_vars.end()) {
        const Result<int64_t> told = whole_number("MODEL_ENV_VARS." + own->name, own->value, 1, kMostProcesses);
        if (!told) return told.status().with(test_.config);
        base_.processes_per_node = static_cast<int>(*told);
      }
      const std::string save =
          (fs::path(save_) / fmt::format("repeat_{}_key_{}", request_.repeat, args->name)).string();
      Status added = add_run(
          number,
          {.tensorboard = tensorboard(number), .load = plan_.frozen.empty() ? nothing : plan_.frozen, .save = save});
      if (!added.ok()) return added;
    }
    return {};
  }

  const TestCase& test_;
  ArgumentChanges changes_;
  const discover::Variables& variables_;
  const PlanRequest& request_;
  CasePlan plan_;
  Job base_;
  std::string save_;
  bool nemo_ = false;
};

}  // namespace

CasePlan facts_of(const TestCase& test) {
  CasePlan facts;
  facts.name = test.name;
  facts.rl = test.mode == "rl";
  facts.type = type_of(test.test_type);
  facts.xpass = test.test_evaluation == "xpass";
  facts.metrics = test.metrics;
  facts.metrics_is_null = test.metrics_is_null;
  facts.tolerances = test.assay.tolerance;
  facts.nondeterministic = says(env_var(test, "NVTE_ALLOW_NONDETERMINISTIC_ALGO"), "1") ||
                           says(env_var(test, "NON_DETERMINSTIC_RESULTS"), "1");
  if (const std::string* start = env_var(test, "THROUGHPUT_START_STEP")) facts.throughput_start = *start;
  return facts;
}

Result<JudgeRules> CasePlan::rules() const {
  JudgeRules rules{.rl = rl, .metrics = metrics, .nondeterministic = nondeterministic, .tolerances = tolerances};
  if (!rl || !throughput_start) return rules;
  const Result<int64_t> start = whole_number("ENV_VARS.THROUGHPUT_START_STEP", *throughput_start, 0, kMostSteps);
  if (!start) return start.status();
  rules.throughput_start = *start;
  return rules;
}

CompatMetrics CasePlan::compat_metrics() const {
  if (!metrics) return {};
  if (metrics_is_null) return {.form = CompatMetrics::Form::kNull, .names = {}};
  return {.form = CompatMetrics::Form::kList, .names = *metrics};
}

Result<CasePlan> plan_case(const TestCase& test, const discover::Variables& variables, const PlanRequest& request) {
  return Planner(test, variables, request).run();
}

Result<std::optional<int>> repeats_of(const TestCase& test, const discover::Variables& variables, int most) {
  if (!why_uncompared(test, variables).empty()) return std::optional<int>(1);
  const std::string* text = env_var(test, "N_REPEAT");
  if (text == nullptr) {
    const auto given = variables.set.find("N_REPEAT");
    if (given == variables.set.end() || given->second.empty()) return std::optional<int>();
    text = &given->second;
  }
  const Result<int64_t> number = whole_number("N_REPEAT", *text, 1, most);
  if (!number) return number.status();
  return std::optional<int>(static_cast<int>(*number));
}

}  // namespace assay::train
