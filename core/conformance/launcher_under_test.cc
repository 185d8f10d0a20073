#include "core/conformance/launcher_under_test.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "core/conformance/lent.h"
#include "core/conformance/watch.h"

namespace assay::conformance {

std::string TaskSeen::text() const {
  switch (phase) {
    case ASSAY_TASK_WAITING:
      return "WAITING";
    case ASSAY_TASK_RUNNING:
      return "RUNNING";
    case ASSAY_TASK_EXITED:
      return signal != 0 ? fmt::format("EXITED with signal {}", signal) : fmt::format("EXITED with code {}", exit_code);
    case ASSAY_TASK_LOST:
      return "LOST: " + reason;
  }
  return fmt::format("phase {}", phase);
}

LauncherUnderTest::LauncherUnderTest(const Subject& subject, Findings& findings, const std::string& options)
    : subject_(subject), findings_(findings) {
  std::string name = (std::filesystem::temp_directory_path() / "assay-launcher-XXXXXX").string();
  if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  Lent lent("the config of open", options.size() + 4096);
  auto config = sdk::sized<assay_launcher_config>();
  config.options = lent.put(options);
  config.folder = lent.put(folder_);
  config.run = lent.put("assay-conformance-" + std::to_string(::getpid()));
  const assay_launcher_config* place = lent.object(config);
  lent.lock();
  void* const untouched = this;
  void* launcher = untouched;
  opening_ =
      call(findings, "open with options " + options.substr(0, 120), subject.plugin.launcher()->open, place, &launcher);
  if (opening_.ok()) {
    findings.expect(launcher != untouched && launcher != nullptr, "open: succeeded without a handle");
    launcher_ = launcher == untouched ? nullptr : launcher;
  } else {
    findings.expect(launcher == untouched, "open: failed and wrote a handle; outputs stay untouched on failure");
  }
}

LauncherUnderTest::~LauncherUnderTest() {
  close();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void LauncherUnderTest::close() {
  if (launcher_ == nullptr) return;
  watch_doing("close");
  subject_.plugin.launcher()->close(std::exchange(launcher_, nullptr));
}

bool LauncherUnderTest::opened() const {
  if (launcher_ == nullptr)
    findings_.nothing_checked("open was refused with " + opening_.text() + " (--options gives it what it needs)");
  return launcher_ != nullptr;
}

std::string LauncherUnderTest::log(size_t task) const {
  std::ifstream in(fmt::format("{}/task {}.log", folder_, task));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Called LauncherUnderTest::start(const JobWish& wish, uint64_t* id) {
  Lent lent("the job of start");
  std::vector<assay_task> tasks;
  for (size_t i = 0; i < wish.scripts.size(); ++i) {
    const std::vector<assay_str> words = {lent.put("/bin/sh"), lent.put("-c"), lent.put(wish.scripts[i])};
    tasks.push_back({lent.array(std::span<const assay_str>(words)), words.size(),
                     lent.put(fmt::format("{}/task {}.log", folder_, i))});
  }
  std::vector<assay_str> environment;
  for (const std::string& entry : wish.environment) environment.push_back(lent.put(entry));
  auto job = sdk::sized<assay_job>();
  job.name = lent.put("assay-conformance");
  job.tasks = lent.array(std::span<const assay_task>(tasks));
  job.task_count = tasks.size();
  job.environment = lent.array(std::span<const assay_str>(environment));
  job.environment_count = environment.size();
  job.seconds = wish.seconds;
  job.cpus = 1;
  job.most_at_once = wish.most_at_once;
  const assay_job* place = lent.object(job);
  lent.lock();
  const uint64_t untouched = 0x5A5A5A5A;
  *id = untouched;
  Called called = call(findings_, "start", subject_.plugin.launcher()->start, launcher_, place, id);
  if (!called.ok())
    findings_.expect(*id == untouched, "start: failed and wrote an id; outputs stay untouched on failure");
  return called;
}

Called LauncherUnderTest::poll(uint64_t id, size_t count, std::vector<TaskSeen>* tasks) {
  auto states = std::vector<assay_task_state>(count, sdk::sized<assay_task_state>());
  const auto began = std::chrono::steady_clock::now();
  Called called = call(findings_, "poll", subject_.plugin.launcher()->poll, launcher_, id, states.data(), count);
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  findings_.expect(took < 20, fmt::format("poll: took {:.1f} s; it does not wait", took));
  if (!called.ok()) return called;
  tasks->clear();
  for (const assay_task_state& state : states) {
    findings_.expect(state.phase >= ASSAY_TASK_WAITING && state.phase <= ASSAY_TASK_LOST,
                     fmt::format("poll: phase {} of a task, expected 1 to 4", state.phase));
    findings_.expect(state.size == sizeof(assay_task_state), "poll: changed `size` of a state; it is the caller's");
    const std::string reason(sdk::text(state.reason));
    findings_.expect(one_line(reason) && one_line(sdk::text(state.where)),
                     "poll: where or reason of a task is not one line");
    findings_.expect(state.phase != ASSAY_TASK_LOST || !reason.empty(), "poll: a task is LOST without a reason");
    tasks->push_back({state.phase, state.exit_code, state.signal, std::string(sdk::text(state.where)), reason});
  }
  return called;
}

Called LauncherUnderTest::cancel(uint64_t id, int64_t task) {
  return call(findings_, "cancel", subject_.plugin.launcher()->cancel, launcher_, id, task);
}

std::vector<TaskSeen> LauncherUnderTest::finish(uint64_t id, size_t count, std::chrono::seconds limit) {
  std::vector<TaskSeen> tasks(count);
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    const Called called = poll(id, count, &tasks);
    if (!called.ok() && called.code != ASSAY_INFRA) {
      findings_.fail("poll: " + called.text());
      return tasks;
    }
    size_t over = 0;
    for (const TaskSeen& task : tasks) over += task.over() ? 1 : 0;
    if (called.ok() && over == count) return tasks;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  findings_.fail(fmt::format("poll: after {} s a task is {}", limit.count(), tasks.empty() ? "" : tasks[0].text()));
  return tasks;
}

}  // namespace assay::conformance
