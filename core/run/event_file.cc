#include "core/run/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace assay::run {
namespace {

Status failed(const std::string& what, const std::filesystem::path& path) {
  return infra(
      fmt::format("{}: {}: {}; check the disk and the permissions", path.string(), what, std::strerror(errno)));
}

Status write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("cannot be written", path);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// Cuts the complete lines off the beginning of `text`.
std::vector<std::string> take_lines(std::string* text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text->find('\n'); end != std::string::npos; end = text->find('\n', begin)) {
    if (end > begin) lines.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  text->erase(0, begin);
  return lines;
}

// Cuts off what follows the last newline.
Status cut_torn_line(int fd, const std::filesystem::path& file) {
  off_t end = ::lseek(fd, 0, SEEK_END);
  std::array<char, 1 << 16> buffer;
  for (bool found = false; !found && end > 0;) {
    const auto size = static_cast<size_t>(std::min<off_t>(end, buffer.size()));
    const ssize_t n = ::pread(fd, buffer.data(), size, end - static_cast<off_t>(size));
    if (n != static_cast<ssize_t>(size)) return failed("cannot be read", file);
    const size_t newline = std::string_view(buffer.data(), size).rfind('\n');
    found = newline != std::string_view::npos;
    end -= static_cast<off_t>(found ? size - newline - 1 : size);
  }
  if (end < 0 || ::ftruncate(fd, end) != 0) return failed("its torn last line cannot be cut off", file);
  return {};
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<EventWriter> EventWriter::create(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return failed("cannot be made", file);
  return EventWriter(std::move(fd), file.string());
}

Result<EventWriter> EventWriter::reopen(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!fd) return failed("cannot be opened for writing", file);
  if (Status cut = cut_torn_line(fd.get(), file); !cut.ok()) return cut;
  return EventWriter(std::move(fd), file.string());
}

Result<EventWriter> EventWriter::go_on(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return failed("cannot be opened", file);
  EventWriter writer(std::move(fd), file.string());
  const off_t size = ::lseek(writer.fd_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(writer.fd_.get(), &last, 1, size - 1) != 1) return failed("cannot be read", file);
  if (last != '\n') {
    if (Status written = writer.append("\n"); !written.ok()) return written;
  }
  return writer;
}

Status EventWriter::append(std::string_view line) {
  Status written = write_all(fd_.get(), line, path_);
  if (!written.ok()) {  // a torn line would spoil the next one; should it stay, readers say so
    [[maybe_unused]] const Status cut = cut_torn_line(fd_.get(), path_);
  }
  return written;
}

Status EventWriter::sync_soon() {
  return std::chrono::steady_clock::now() - synced_ < kSyncInterval ? Status() : sync();
}

Status EventWriter::sync() {
  const int code = ::fdatasync(fd_.get());
  synced_ = std::chrono::steady_clock::now();
  if (code != 0 && errno != EINVAL && errno != EROFS) return failed("cannot be flushed", path_);
  return {};
}

std::vector<std::string> EventReader::poll() {
  if (!fd_) fd_ = Fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_) return {};
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t n = ::pread(fd_.get(), buffer.data(), buffer.size(), offset_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    rest_.append(buffer.data(), static_cast<size_t>(n));
    offset_ += n;
  }
  if (reopened_) fd_ = Fd();
  return take_lines(&rest_);
}

Result<std::vector<std::string>> read_event_lines(const std::filesystem::path& file) {
  Result<std::string> text = read_file(file);
  if (!text) return text.status();
  return take_lines(&*text);
}

Status write_file(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path temporary = file.string() + ".part";
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return failed("cannot be made", temporary);
  if (Status written = write_all(fd.get(), text, temporary); !written.ok()) return written;
  if (::rename(temporary.c_str(), file.c_str()) != 0) return failed("cannot be renamed into place", file);
  return {};
}

}  // namespace assay::run
