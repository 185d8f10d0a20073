#include "core/command/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace assay::command {
namespace {

// Pages that nobody touches cost nothing.
template <class T>
T* map(size_t count) {
  void* at =
      ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(at);
}

// As getdents64 writes it.
struct Entry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};

// 0: no number.
pid_t number(const char* text) {
  long value = 0;
  if (*text == '\0') return 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || value > (1 << 24)) return 0;
    value = value * 10 + (*text - '0');
  }
  return static_cast<pid_t>(value);
}

// State and parent of a process; false when it is gone.
bool read_stat(int proc, const char* name, char* state, pid_t* parent) {
  char path[32];
  const size_t length = std::strlen(name);
  if (length > 12) return false;
  std::memcpy(path, name, length);
  std::memcpy(path + length, "/stat", 6);
  const int fd = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];  // pid (name of at most 16, or 64 for kernel threads) state parent ...
  const ssize_t n = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  const char* close = std::strrchr(text, ')');
  if (close == nullptr || close[1] != ' ' || close[2] == '\0' || close[3] != ' ') return false;
  *state = close[2];
  long value = 0;
  for (const char* c = close + 4; *c >= '0' && *c <= '9'; ++c) value = value * 10 + (*c - '0');
  *parent = static_cast<pid_t>(value);
  return true;
}

}  // namespace

ProcessTable::ProcessTable() : parents_(map<pid_t>(kMost)), pids_(map<pid_t>(kMost)), flags_(map<uint8_t>(kMost)) {}

ProcessTable::~ProcessTable() {
  ::munmap(parents_, kMost * sizeof(pid_t));
  ::munmap(pids_, kMost * sizeof(pid_t));
  ::munmap(flags_, kMost);
}

void ProcessTable::forget() {
  for (size_t i = 0; i < count_; ++i) parents_[pids_[i]] = 0;
  count_ = 0;
}

bool ProcessTable::read() {
  forget();
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return false;
  alignas(Entry) char buffer[32768];
  for (;;) {
    const long n = ::syscall(SYS_getdents64, proc, buffer, sizeof(buffer));
    if (n <= 0) break;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      const char* name = buffer + at + offsetof(Entry, name);
      at += entry->length;
      const pid_t pid = number(name);
      char state = 0;
      pid_t parent = 0;
      if (pid <= 0 || pid >= kMost || parents_[pid] != 0 || !read_stat(proc, name, &state, &parent)) continue;
      parents_[pid] = parent > 0 ? parent : 1;
      pids_[count_] = pid;
      flags_[count_] = state == 'Z' || state == 'X' ? 1 : 0;
      ++count_;
    }
  }
  ::close(proc);
  return true;
}

bool ProcessTable::descends(pid_t pid, pid_t ancestor) const {
  for (size_t steps = 0; steps <= count_; ++steps) {
    if (pid <= 1 || pid >= kMost) return false;
    const pid_t parent = parents_[pid];
    if (parent == ancestor) return true;
    pid = parent;
  }
  return false;
}

}  // namespace assay::command
