// One external command, run to its end as a whole tree of processes.
//
// A guardian process stands between the caller and the command: it is forked, not executed, adopts whatever the command
// leaves behind (subreaper), and ends the tree when it is told to, when the command ends, and when the caller dies in
// any way, SIGKILL included. Processes that left their group or session are found through /proc, so nothing survives.
// Should the guardian itself be killed, the caller finds the tree by a mark in its environment.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::command {

// Name of the variable that marks the processes of a command; its value is unique to the command.
inline constexpr const char* kMarkVariable = "ASSAY_COMMAND_MARK";

struct CommandOptions {
  // No shell. argv[0] without a slash is looked up in PATH of `environment` (its usual folders where it has none); with
  // one, it is relative to `folder`.
  std::vector<std::string> argv = {};
  std::map<std::string, std::string> environment = {};  // the whole of it, but for kMarkVariable
  std::filesystem::path folder = {};                    // working folder; empty: the caller's
  std::filesystem::path input = {};                     // stdin; empty: nothing to read
  std::filesystem::path output = {};                    // stdout goes there, made anew; empty: dropped
  std::filesystem::path errors = {};                    // stderr; may be the same file as `output`
  bool append = false;                                  // the two files are gone on with, not made anew
  std::chrono::milliseconds time_limit{0};              // 0: none
  std::chrono::milliseconds kill_grace{2000};           // from SIGTERM to SIGKILL
  uint64_t memory_limit = 0;                            // bytes of anonymous resident memory of the tree; 0: none
  uint64_t output_limit = 1ULL << 30;                   // bytes of each of the two files, which are cut there; 0: none
  std::function<bool()> cancelled = {};                 // asked every few milliseconds; empty: never
};

// A value of kMarkVariable that no other process of this machine has; it begins with this process's own mark and a
// point where there is one, so that what a marked process starts is found by its mark too.
std::string new_mark();

// Kills every process that was executed with this mark or with one that was made under it, or forked from such a
// process, until there is none; gives up after seconds. Guardians are left alone: they notice, and end their commands.
void end_marked(const std::string& mark);

// What ended a command before its time.
enum class Limit : uint8_t { kNone, kTime, kMemory, kOutput, kCancelled, kStopped };

// How a command ended.
struct CommandEnd {
  Limit limit = Limit::kNone;
  int code = 0;                 // exit code of the program; meaningless when a signal ended it
  int signal = 0;               // 0: it exited
  double seconds = 0;           // start to the end of the last process
  uint64_t peak_memory = 0;     // bytes of anonymous resident memory of the tree, as polled
  int leftovers = 0;            // processes that were still there after the program had ended, and were ended
  int survivors = 0;            // processes that could not be killed (uninterruptible, another user's)
  std::string limit_text = {};  // "time limit of 2.0 s reached"; "" without a limit

  bool ok() const { return limit == Limit::kNone && signal == 0 && code == 0; }
  // One line: "exit code 3", "SIGSEGV (Segmentation fault)", "time limit of 2.0 s reached", and what was left behind:
  // "exit code 0; 2 processes were left behind and were ended".
  std::string text() const;
};

// A command that runs. Move-only; one thread at a time, but not always the same. Destroying it kills the tree at once
// and waits until it is gone.
class Command {
 public:
  // Returns once the program was executed. Fails, leaving no process, with kNotFound (program or folder or input file
  // does not exist), kInvalid (no program named, a word with a NUL), kInfra (not executable, no process, no file).
  static Result<Command> start(CommandOptions options);

  Command(Command&&) noexcept;
  Command& operator=(Command&&) noexcept;
  ~Command();

  pid_t pid() const;  // of the program

  // Looks after limits and the end; to be called at least every 50 ms or so. How it ended, once no process of the tree
  // is left; nullopt before. The two files are then complete.
  std::optional<CommandEnd> poll();

  // As poll(), but waits for the end, at most this long; without a time, however long it takes.
  std::optional<CommandEnd> wait(std::chrono::milliseconds most);
  CommandEnd wait();

  // Begins the end: SIGTERM to every process, SIGKILL after the grace. Its limit is then kStopped.
  void stop();

  // Anonymous resident memory of the tree now, bytes.
  uint64_t memory() const;

 private:
  class Running;
  explicit Command(std::unique_ptr<Running> running);
  std::unique_ptr<Running> running_;
};

// start() and wait().
Result<CommandEnd> run_command(CommandOptions options);

// Path of a program that is looked up as Command::start does; kNotFound names the folders that were looked at.
Result<std::string> find_program(const std::string& name, const std::map<std::string, std::string>& environment,
                                 const std::filesystem::path& folder);

// "exit code 3", "SIGSEGV (Segmentation fault)".
std::string exit_text(int code, int signal);

}  // namespace assay::command
