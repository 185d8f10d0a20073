#include "backends/cpu/memory.h"

#include <sys/mman.h>

#include <fstream>
#include <limits>
#include <string>

namespace assay::cpu {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : kUnknown;  // "max" is no number: no limit
}

uint64_t meminfo_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    uint64_t kilobytes = 0;
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
    std::getline(file, name);
  }
  return kUnknown;
}

// Path of this process's control group below the unified hierarchy ("/" where there is none of its own).
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "/";
}

// What the control groups from this process's up to the root leave; file cache counts as free.
uint64_t control_group_available() {
  uint64_t free = kUnknown;
  for (std::string group = control_group(); !group.empty(); group.resize(group.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + (group == "/" ? std::string() : group);
    const uint64_t limit = number_in(folder + "/memory.max");
    const uint64_t used = number_in(folder + "/memory.current");
    if (limit != kUnknown && used != kUnknown) {
      uint64_t cache = 0;
      std::ifstream stat(folder + "/memory.stat");
      for (std::string name; stat >> name;) {
        uint64_t bytes = 0;
        stat >> bytes;
        if (name == "inactive_file" || name == "active_file") cache += bytes;
      }
      const uint64_t held = used > cache ? used - cache : 0;
      free = std::min(free, limit > held ? limit - held : 0);
    }
    if (group == "/") break;
  }
  return free;
}

std::string gigabytes(uint64_t bytes) {
  const uint64_t hundredths = bytes / 10000000;
  std::string fraction = std::to_string(hundredths % 100);
  if (fraction.size() < 2) fraction = "0" + fraction;
  return std::to_string(hundredths / 100) + "." + fraction + " GB";
}

}  // namespace

uint64_t available_memory() { return std::min(meminfo_available(), control_group_available()); }

Result<Region> Region::allocate(uint64_t bytes, const std::string& what) {
  Region region;
  if (bytes == 0) return region;
  const uint64_t free = available_memory();
  void* data = MAP_FAILED;
  if (bytes <= free) data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return exhausted(what + ": " + gigabytes(bytes) + " needed, " + gigabytes(free) +
                     " free; use a smaller model or cache, or a machine with more memory");
  }
  madvise(data, bytes, MADV_HUGEPAGE);  // a wish: without it the pages are small
  region.data_ = static_cast<std::byte*>(data);
  region.bytes_ = bytes;
  return region;
}

Region::~Region() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace assay::cpu
