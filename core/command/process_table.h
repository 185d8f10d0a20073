// Who descends from whom, read from /proc. Nothing here allocates after construction: a forked child may use it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace assay::command {

// Not thread-safe. A copy that fork made is independent of the original.
class ProcessTable {
 public:
  ProcessTable();
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // Reads the processes of the machine that exist now. False when there is no /proc.
  bool read();

  size_t size() const { return count_; }
  pid_t pid(size_t i) const { return pids_[i]; }
  bool zombie(size_t i) const { return (flags_[i] & 1) != 0; }

  // Whether the process is a child of `ancestor`, of its child, and so on, as of read().
  bool descends(pid_t pid, pid_t ancestor) const;

 private:
  void forget();

  static constexpr pid_t kMost = 1 << 22;  // the largest pid that Linux gives, plus one
  pid_t* parents_ = nullptr;               // (kMost) by pid; 0: no such process
  pid_t* pids_ = nullptr;                  // (kMost) those that exist
  uint8_t* flags_ = nullptr;               // (kMost) of pids_
  size_t count_ = 0;
};

}  // namespace assay::command
