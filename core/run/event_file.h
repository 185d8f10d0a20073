// Files of events: appended line by line on one side, followed on the other.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"
#include "core/golden/file.h"

namespace assay::run {

// Owner of one file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Appends lines, one write(2) each: what was appended survives the death of this process. For one thread.
class EventWriter {
 public:
  // Makes the file, or empties it. Fails with kInfra.
  static Result<EventWriter> create(const std::filesystem::path& file);

  // Goes on with an existing file; what follows its last newline is cut off. Fails with kInfra.
  static Result<EventWriter> reopen(const std::filesystem::path& file);

  // Goes on with a file that another process began, after its last complete line: a torn one is ended. Made if missing.
  static Result<EventWriter> go_on(const std::filesystem::path& file);

  // `line` ends with a newline. Fails with kInfra (disk full ...).
  Status append(std::string_view line);

  // To be called at the end of a case. Forces the file to disk, at most once in `kSyncInterval`: a machine that loses
  // power loses the cases of the last interval and no more; 10,000 short cases do not wait for 10,000 disk flushes.
  Status sync_soon();
  Status sync();

  static constexpr std::chrono::milliseconds kSyncInterval{250};

 private:
  EventWriter(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

// Follows a file that another process appends to. For one thread.
class EventReader {
 public:
  // `reopened`: the file is opened anew each time, which is what makes a network file system ask its server.
  explicit EventReader(std::filesystem::path file, bool reopened = false)
      : file_(std::move(file)), reopened_(reopened) {}

  // Complete lines (without newline) since the last call; none when the file does not exist yet. A line that has no
  // newline yet is kept back. Empty lines are dropped.
  std::vector<std::string> poll();

  // Bytes of an unfinished last line.
  size_t torn_bytes() const { return rest_.size(); }

 private:
  std::filesystem::path file_;
  bool reopened_;
  Fd fd_;
  off_t offset_ = 0;
  std::string rest_;
};

// All complete lines of a file of events.
Result<std::vector<std::string>> read_event_lines(const std::filesystem::path& file);

// Writes a whole file through a temporary one beside it. Fails with kInfra.
Status write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace assay::run
