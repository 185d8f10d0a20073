#include "tools/load_bench/file_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backends/model/checkpoint/mapped_file.h"

namespace assay::tools {
namespace {

// Hundredths of the file's pages that are in the cache.
Result<size_t> cached_percent(const std::string& path) {
  const auto file = model::MappedFile::open(path);
  if (!file) return file.status();
  const auto bytes = (*file)->bytes();
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes.size() + page - 1) / page);
  if (pages.empty()) return size_t{0};
  if (::mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), pages.data()) != 0) {
    return infra(fmt::format("{}: mincore: {}", path, std::strerror(errno)));
  }
  const auto cached = std::ranges::count_if(pages, [](unsigned char state) { return (state & 1U) != 0; });
  return static_cast<size_t>(cached) * 100 / pages.size();
}

Status drop(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return infra(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  ::fdatasync(fd);  // pages that are not on the disk yet would stay
  const int error = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  return error == 0 ? Status() : infra(fmt::format("{}: posix_fadvise: {}", path, std::strerror(error)));
}

}  // namespace

Status drop_from_cache(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (Status dropped = drop(file); !dropped.ok()) return dropped;
    const Result<size_t> cached = cached_percent(file);
    if (!cached) return cached.status();
    if (*cached > 1) {
      return infra(
          fmt::format("{}: {} % of it stay in the cache after they were dropped; put it on a disk that no other "
                      "program reads it from",
                      file, *cached));
    }
  }
  return {};
}

}  // namespace assay::tools
