// The process between a caller and its command.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "core/command/process_table.h"

namespace assay::command {

inline constexpr const char* kGuardianName = "assay-guard";  // proc_name() of guardians

// What the guardian is told, made before the fork: nothing is allocated after it.
struct GuardianOrders {
  const char* program = nullptr;  // path
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* folder = nullptr;  // null: the caller's
  int input = -1;                // of the program
  int output = -1;
  int errors = -1;
  int control = -1;  // bytes of GuardianCommand come from there; its end means that the caller is gone
  int report = -1;   // GuardianReport goes there
  int grace_ms = 0;
  ProcessTable* table = nullptr;
};

enum class GuardianCommand : char { kTerminate = 'T', kKill = 'K' };

// One write(2) each.
struct GuardianReport {
  enum Kind : int32_t { kStarted = 1, kRefused = 2, kEnded = 3 };
  enum Step : int32_t { kFork = 1, kFolder = 2, kExecute = 3 };
  int32_t kind = 0;
  int32_t value = 0;      // kStarted: pid of the program; kRefused: errno; kEnded: its wait status
  int32_t step = 0;       // kRefused
  int32_t leftovers = 0;  // kEnded: processes that lived on after the program had ended by itself
  int32_t survivors = 0;  // kEnded: processes that could not be killed
};

// To be called in a forked child; uses system calls alone. Ends when the tree is gone.
[[noreturn]] void guard(GuardianOrders orders);

}  // namespace assay::command
