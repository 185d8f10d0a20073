#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/conformance/engine_checks.h"
#include "core/conformance/launcher_under_test.h"

namespace assay::conformance {
namespace {

// Waits up to `seconds` for `condition`.
template <class Condition>
bool eventually(const Condition& condition, int seconds = 10) {
  for (int i = 0; i < 50 * seconds; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return condition();
}

// The process that a script wrote the id of; 0: not yet.
pid_t process_in(const std::string& file) {
  std::ifstream in(file);
  pid_t pid = 0;
  in >> pid;
  return pid;
}

bool alive(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string id;
  std::string name;
  std::string state;
  in >> id >> name >> state;
  return !state.empty() && state != "Z";
}

// True, and noted as not checked, where the launcher's system cannot be reached from here.
bool unreachable(Findings& findings, const Called& called) {
  if (called.code != ASSAY_INFRA) return false;
  findings.nothing_checked("the launcher's system cannot be reached: " + called.message);
  return true;
}

// Writes its own id and that of a child, then sleeps: what is to be ended.
std::string sleeper(const std::string& folder, const std::string& name) {
  return fmt::format("echo $$ > '{0}/{1}.tmp'; sleep 300 & echo $! > '{0}/{1}.child'; mv '{0}/{1}.tmp' '{0}/{1}'; wait",
                     folder, name);
}

// False, noted as a finding, where the sleeper does not start.
bool started(Findings& findings, LauncherUnderTest& launcher, uint64_t id, size_t count, const std::string& name) {
  const std::string file = launcher.folder() + "/" + name;
  std::vector<TaskSeen> tasks;
  const bool there = eventually([&] {
    launcher.poll(id, count, &tasks);
    return process_in(file) != 0;
  });
  return findings.expect(there, "a task that writes a file does not start within 10 s");
}

void expect_ended(Findings& findings, const std::string& folder, const std::string& name, const std::string& by) {
  for (const std::string& file : {name, name + ".child"}) {
    const pid_t pid = process_in(folder + "/" + file);
    if (pid == 0) continue;
    if (findings.expect(eventually([&] { return !alive(pid); }, findings.ok() ? 4 : 0),
                        fmt::format("{}: {} still runs", by, file == name ? "the task" : "a child of the task"))) {
      continue;
    }
    ::kill(pid, SIGKILL);
  }
}

void tasks(const Subject& subject, Findings& findings) {
  LauncherUnderTest launcher(subject, findings, subject.options.options);
  if (!launcher.opened()) return;
  uint64_t id = 0;
  const Called called =
      launcher.start({.scripts = {"/bin/true", "exit 3",
                                  "echo to the log; echo and this >&2; test \"$ASSAY_CONFORMANCE\" = 'a value'"},
                      .environment = {"ASSAY_CONFORMANCE=a value"}},
                     &id);
  if (unreachable(findings, called)) return;
  if (!findings.expect(called.ok(), "start of three small tasks: " + called.text())) return;
  const std::vector<TaskSeen> seen = launcher.finish(id, 3);
  findings.expect(seen[0].phase == ASSAY_TASK_EXITED && seen[0].exit_code == 0 && seen[0].signal == 0,
                  "a task that runs /bin/true: " + seen[0].text() + ", expected EXITED with code 0");
  findings.expect(seen[1].phase == ASSAY_TASK_EXITED && seen[1].exit_code == 3,
                  "a task that exits with 3: " + seen[1].text());
  findings.expect(
      seen[2].phase == ASSAY_TASK_EXITED && seen[2].exit_code == 0,
      "a task that looks for a variable of the job's environment: " + seen[2].text() + ", expected EXITED with code 0");
  findings.expect(eventually([&] {
                    return launcher.log(2).find("to the log\n") != std::string::npos &&
                           launcher.log(2).find("and this\n") != std::string::npos;
                  }),
                  "stdout and stderr of a task are not in its log: '" + launcher.log(2) + "'");
  std::vector<TaskSeen> again;
  findings.expect(launcher.poll(id, 3, &again).ok() && again[1].exit_code == 3,
                  "poll: a state changes after a task is over");
  uint64_t second = 0;
  findings.expect(launcher.start({.scripts = {"/bin/true"}}, &second).ok() && second != id,
                  "start: a second job gets no id of its own");
  launcher.finish(second, 1);
}

void cancel(const Subject& subject, Findings& findings) {
  LauncherUnderTest launcher(subject, findings, subject.options.options);
  if (!launcher.opened()) return;
  uint64_t id = 0;
  const Called called = launcher.start({.scripts = {sleeper(launcher.folder(), "one"), "sleep 1; exit 0"}}, &id);
  if (unreachable(findings, called)) return;
  if (!findings.expect(called.ok(), "start: " + called.text()) || !started(findings, launcher, id, 2, "one")) return;
  findings.expect(launcher.cancel(id, 0).ok(), "cancel of a task that runs: failed");
  const std::vector<TaskSeen> seen = launcher.finish(id, 2);
  findings.expect(seen[0].phase == ASSAY_TASK_LOST,
                  "a cancelled task: " + seen[0].text() + ", expected LOST with a reason");
  findings.expect(seen[1].phase == ASSAY_TASK_EXITED && seen[1].exit_code == 0,
                  "the task beside a cancelled one: " + seen[1].text() + ", expected EXITED with code 0");
  expect_ended(findings, launcher.folder(), "one", "cancel");
  launcher.cancel(id, -1);  // nothing is left: any answer
  uint64_t all = 0;
  const Called second = launcher.start(
      {.scripts = {sleeper(launcher.folder(), "two"), "sleep 300", "sleep 300"}, .most_at_once = 1}, &all);
  if (!findings.expect(second.ok(), "start of a second job: " + second.text())) return;
  if (!started(findings, launcher, all, 3, "two")) return;
  findings.expect(launcher.cancel(all, -1).ok(), "cancel of a whole job: failed");
  for (const TaskSeen& task : launcher.finish(all, 3)) {
    findings.expect(task.phase == ASSAY_TASK_LOST, "a task of a cancelled job: " + task.text() + ", expected LOST");
  }
  expect_ended(findings, launcher.folder(), "two", "cancel of a whole job");
}

void close_ends_everything(const Subject& subject, Findings& findings) {
  LauncherUnderTest launcher(subject, findings, subject.options.options);
  LauncherUnderTest other(subject, findings, subject.options.options);
  if (!launcher.opened() || !other.opened()) return;
  uint64_t id = 0;
  uint64_t kept = 0;
  const Called first = launcher.start({.scripts = {sleeper(launcher.folder(), "one")}}, &id);
  if (unreachable(findings, first) || !findings.expect(first.ok(), "start: " + first.text())) return;
  const Called second = other.start({.scripts = {sleeper(other.folder(), "two")}}, &kept);
  if (!findings.expect(second.ok(), "start by a second launcher: " + second.text())) return;
  if (!started(findings, launcher, id, 1, "one") || !started(findings, other, kept, 1, "two")) return;
  launcher.close();
  expect_ended(findings, launcher.folder(), "one", "close");
  findings.expect(alive(process_in(other.folder() + "/two")), "close of one launcher ends the tasks of another");
  other.close();
  expect_ended(findings, other.folder(), "two", "close");
  findings.expect(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD,
                  "close leaves child processes that nobody waits for");
}

void limits(const Subject& subject, Findings& findings) {
  LauncherUnderTest launcher(subject, findings, subject.options.options);
  if (!launcher.opened()) return;
  uint64_t id = 0;
  const std::string count = fmt::format(
      "f='{0}/r'; mkdir \"$f.$$\"; n=$(ls -d \"$f\".* | wc -l); sleep 0.2; rmdir \"$f.$$\"; test \"$n\" -le 2",
      launcher.folder());
  const Called called = launcher.start({.scripts = {count, count, count, count, count}, .most_at_once = 2}, &id);
  if (unreachable(findings, called)) return;
  if (!findings.expect(called.ok(), "start of five tasks, two at once: " + called.text())) return;
  for (const TaskSeen& task : launcher.finish(id, 5)) {
    findings.expect(task.phase == ASSAY_TASK_EXITED && task.exit_code == 0,
                    "most_at_once 2: more than two tasks ran at one time (" + task.text() + ")");
  }
  uint64_t slow = 0;
  const Called limited = launcher.start({.scripts = {sleeper(launcher.folder(), "slow")}, .seconds = 1}, &slow);
  if (!findings.expect(limited.ok(), "start of a task with a time limit: " + limited.text())) return;
  std::vector<TaskSeen> seen(1);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(8);
  while (!seen[0].over() && std::chrono::steady_clock::now() < until) {
    launcher.poll(slow, 1, &seen);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (!seen[0].over()) {
    findings.not_checked(
        "time limits: a task with a limit of 1 s ran on for 8 s; systems that count in minutes do that");
    launcher.cancel(slow, -1);
    return;
  }
  findings.expect(seen[0].phase == ASSAY_TASK_LOST,
                  "a task beyond its time limit: " + seen[0].text() + ", expected LOST with a reason");
  expect_ended(findings, launcher.folder(), "slow", "the time limit");
}

void bad_jobs(const Subject& subject, Findings& findings) {
  LauncherUnderTest launcher(subject, findings, subject.options.options);
  if (!launcher.opened()) return;
  uint64_t id = 0;
  findings.expect(!launcher.start({.scripts = {}}, &id).ok(), "start: a job without tasks is accepted");
  std::vector<TaskSeen> seen;
  const Called poll = launcher.poll(987654321, 1, &seen);
  if (unreachable(findings, poll)) return;
  findings.expect(poll.code == ASSAY_NOT_FOUND || poll.code == ASSAY_INVALID,
                  "poll of a job that never was: " + poll.text() + ", expected NOT_FOUND");
  const Called cancelled = launcher.cancel(987654321, -1);
  if (unreachable(findings, cancelled)) return;
  findings.expect(cancelled.code == ASSAY_NOT_FOUND || cancelled.code == ASSAY_INVALID,
                  "cancel of a job that never was: " + cancelled.text() + ", expected NOT_FOUND");
  const Called odd = launcher.start(
      {.scripts = {"printf '%s' \"a'b\\\"c $ASSAY_ODD\""}, .environment = {"ASSAY_ODD=x 'y' \"z\" $HOME ;&|"}}, &id);
  if (unreachable(findings, odd)) return;
  if (!findings.expect(odd.ok(), "start of a task with quotes in its words: " + odd.text())) return;
  launcher.finish(id, 1);
  findings.expect(eventually([&] { return launcher.log(0).find("a'b\"c x 'y' \"z\" $HOME ;&|") != std::string::npos; }),
                  "words and variables with quotes come out as: " + launcher.log(0));
}

}  // namespace

std::vector<Check> launcher_checks() {
  return {{"options", check_launcher_options}, {"tasks", tasks},   {"cancel", cancel},
          {"close", close_ends_everything},    {"limits", limits}, {"bad jobs", bad_jobs}};
}

}  // namespace assay::conformance
