#include "plugins/launchers/slurm/states.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace assay::launchers {
namespace {

constexpr size_t kMostTasks = 1'000'000;

// Why a task waits that will never run.
constexpr std::array<std::string_view, 12> kHopeless = {"PartitionTimeLimit",
                                                        "PartitionNodeLimit",
                                                        "BadConstraints",
                                                        "launch_failed_requeued_held",
                                                        "AccountNotAllowed",
                                                        "InvalidAccount",
                                                        "InvalidQOS",
                                                        "QOSNotAllowed",
                                                        "JobHeldAdmin",
                                                        "DependencyNeverSatisfied",
                                                        "AssocGrpBillingMinutes",
                                                        "QOSTimeLimit"};

// Slurm's exit code 0:53: the task could not be set up, for instance its output file could not be opened.
constexpr int kSetUpFailed = 53;

constexpr std::string_view kForEver = ": it would wait for ever; mend the profile";

bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

State exited(const std::string& exit_code, const std::string& reason) {
  const size_t colon = exit_code.find(':');
  const int signal = colon == std::string::npos ? 0 : number(std::string_view(exit_code).substr(colon + 1));
  if (signal == kSetUpFailed) {
    return lost("Slurm could not set the task up (exit code " + exit_code +
                    "): does its node see the output folder, and may you write there?",
                false);
  }
  State state = exited_in_shell(number(exit_code));
  if (signal != 0) state.signal = signal;
  state.reason = reason;
  return state;
}

// The text after " NAME=" up to the next blank; "" when it is not there.
std::string field(std::string_view line, std::string_view name) {
  const std::string key = " " + std::string(name) + "=";
  size_t at = line.find(key);
  if (at == std::string_view::npos) {
    if (!line.starts_with(std::string_view(key).substr(1))) return "";
    at = 0;
  } else {
    ++at;
  }
  const size_t begin = at + key.size() - 1;
  return std::string(line.substr(begin, std::min(line.find(' ', begin), line.size()) - begin));
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(mark), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// "5", "2-3", "0-8:2", "1,4-6%2".
std::vector<size_t> task_numbers(std::string_view text) {
  std::vector<size_t> made;
  text = text.substr(0, text.find('%'));
  for (const std::string_view part : split(text, ',')) {
    size_t first = 0;
    size_t step = 1;
    const char* end = part.data() + part.size();
    auto [stop, error] = std::from_chars(part.data(), end, first);
    if (error != std::errc()) continue;
    size_t last = first;
    if (stop != end && *stop == '-') stop = std::from_chars(stop + 1, end, last).ptr;
    if (stop != end && *stop == ':') std::from_chars(stop + 1, end, step);
    for (size_t one = first; one <= std::min(last, kMostTasks); one += std::max<size_t>(step, 1)) made.push_back(one);
  }
  return made;
}

}  // namespace

State state_of(std::string_view full_name, const std::string& reason, const std::string& exit_code) {
  const std::string name(full_name.substr(0, full_name.find_first_of(" +")));  // "CANCELLED by 0", "CANCELLED+"
  const std::string why = reason.empty() || reason == "None" || reason == "(null)" ? "" : reason;
  const std::string words = "Slurm: " + std::string(full_name) + (why.empty() ? "" : " (" + why + ")");
  State state;
  state.reason = why;
  if (one_of(name, {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "RESV_DEL_HOLD", "POWER_UP_NODE"})) {
    const std::string plain = why.substr(0, why.find(','));
    if (std::find(kHopeless.begin(), kHopeless.end(), plain) != kHopeless.end()) {
      return lost(words + std::string(kForEver), false);
    }
    return state;
  }
  if (one_of(name, {"REQUEUE_HOLD", "SPECIAL_EXIT"})) return lost(words + std::string(kForEver), false);
  if (one_of(name, {"RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "SUSPENDED", "STOPPED", "RESIZING"})) {
    state.phase = ASSAY_TASK_RUNNING;
    return state;
  }
  if (name == "COMPLETED" || name == "FAILED") return exited(exit_code, name == "FAILED" ? "" : why);
  if (name == "OUT_OF_MEMORY") {
    state = exited("0:9", words + ": more memory than the job asked for; raise workers.memory or mem");
    return state;
  }
  if (one_of(name, {"TIMEOUT", "DEADLINE"})) {
    return lost(words + ": the task's time limit; raise workers.seconds or time, or lower workers.cases_per_task",
                false);
  }
  if (one_of(name, {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "LAUNCH_FAILED"})) return lost(words, true);
  if (one_of(name, {"CANCELLED", "REVOKED"})) return lost(words + ": not by this run", false);
  state.phase = ASSAY_TASK_RUNNING;  // a state that this Slurm has and we do not know
  state.reason = words;
  return state;
}

bool waits_for_ever(const State& state) { return state.phase == ASSAY_TASK_LOST && state.reason.ends_with(kForEver); }

std::map<size_t, State> parse_scontrol(std::string_view text) {
  std::map<size_t, State> made;
  for (const std::string_view line : split(text, '\n')) {
    const std::string name = field(line, "JobState");
    if (name.empty()) continue;
    State state = state_of(name, field(line, "Reason"), field(line, "ExitCode"));
    state.restarts = number(field(line, "Restarts"));
    std::string node = field(line, "BatchHost");
    if (node.empty()) node = field(line, "NodeList");
    if (node != "(null)") state.where = node;
    for (const size_t task : task_numbers(field(line, "ArrayTaskId"))) made[task] = state;
  }
  return made;
}

std::map<size_t, State> parse_sacct(std::string_view text) {
  std::map<size_t, State> made;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> columns = split(line, '|');
    if (columns.size() < 3) continue;
    const size_t mark = columns[0].find('_');
    if (mark == std::string_view::npos) continue;
    std::string_view numbers = columns[0].substr(mark + 1);
    if (numbers.starts_with('[')) numbers = numbers.substr(1, numbers.find(']') - 1);
    State state = state_of(columns[1], "", std::string(columns[2]));
    if (columns.size() > 3 && columns[3] != "None assigned") state.where = columns[3];
    for (const size_t task : task_numbers(numbers)) made[task] = state;
  }
  return made;
}

}  // namespace assay::launchers
