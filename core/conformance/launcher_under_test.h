// An opened launcher with a folder of its own, driven on lent memory with every promise of assay_launcher_table
// expected.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/conformance/findings.h"

namespace assay::conformance {

// A job of shell scripts, one a task.
struct JobWish {
  std::vector<std::string> scripts;
  std::vector<std::string> environment = {};
  double seconds = 0;
  uint32_t most_at_once = 0;
};

struct TaskSeen {
  uint32_t phase = 0;
  int32_t exit_code = 0;
  int32_t signal = 0;
  std::string where;
  std::string reason;
  bool over() const { return phase == ASSAY_TASK_EXITED || phase == ASSAY_TASK_LOST; }
  std::string text() const;  // "EXITED with code 3"
};

class LauncherUnderTest {
 public:
  // Opens; a refusal is for the caller to judge.
  LauncherUnderTest(const Subject& subject, Findings& findings, const std::string& options);
  ~LauncherUnderTest();
  LauncherUnderTest(const LauncherUnderTest&) = delete;
  LauncherUnderTest& operator=(const LauncherUnderTest&) = delete;

  const Called& opening() const { return opening_; }
  // False, and noted as not checked, where open was refused.
  bool opened() const;
  const std::string& folder() const { return folder_; }
  std::string log(size_t task) const;  // content of a task's log file

  Called start(const JobWish& wish, uint64_t* id);
  // One poll; the states of `count` tasks.
  Called poll(uint64_t id, size_t count, std::vector<TaskSeen>* tasks);
  Called cancel(uint64_t id, int64_t task);
  // Polls until every task is over; what was seen last. Gives up, as a finding, after `limit`.
  std::vector<TaskSeen> finish(uint64_t id, size_t count, std::chrono::seconds limit = std::chrono::seconds(45));
  void close();

 private:
  const Subject& subject_;
  Findings& findings_;
  std::string folder_;
  void* launcher_ = nullptr;
  Called opening_;
};

}  // namespace assay::conformance
