#include "core/run/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace assay::run {
namespace {

namespace fs = std::filesystem;

Result<Fd> lock_folder(const fs::path& folder) {
  const fs::path file = folder / ".lock";
  Fd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) return infra(fmt::format("{}: {}; choose another --output", file.string(), std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> holder{};
    [[maybe_unused]] const ssize_t n = ::pread(lock.get(), holder.data(), holder.size() - 1, 0);
    return invalid(fmt::format("{}: in use by process {}; wait for it or choose another --output", folder.string(),
                               holder.data()));
  }
  const std::string own = std::to_string(::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), own.data(), own.size(), 0) < 0) {
    return infra(
        fmt::format("{}: cannot be written: {}; choose another --output", file.string(), std::strerror(errno)));
  }
  return lock;
}

}  // namespace

Result<Journal> Journal::open(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!fs::is_directory(folder)) {
    return infra(fmt::format("{}: cannot be made a folder: {}; choose another --output", folder.string(),
                             code ? code.message() : "something else is there"));
  }
  Result<Fd> lock = lock_folder(folder);
  if (!lock) return lock.status();
  fs::remove_all(folder / "workers", code);
  for (const char* part : {"workers", "cases"}) {
    fs::create_directories(folder / part, code);
    if (code) return infra(fmt::format("{}: {}", (folder / part).string(), code.message()));
  }
  Result<EventWriter> writer = EventWriter::create(folder / "results.jsonl");
  if (!writer) return writer.status();
  return Journal(*std::move(lock), *std::move(writer));
}

}  // namespace assay::run
