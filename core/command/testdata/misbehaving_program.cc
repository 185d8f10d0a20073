// A program that does wrong what a program can do wrong: misbehaving_program WAY [ARGUMENT...]; see `ways` below.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::string>;

constexpr int kForever = 600;  // seconds: longer than any test

void say(const std::string& text) {
  [[maybe_unused]] const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
}

void ignore_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);
}

[[noreturn]] void stay() {
  for (int i = 0; i < kForever * 10; ++i) ::usleep(100000);
  std::_Exit(0);
}

// Writes its pid to a file of its own below `folder`, so that a test knows whom to look for.
void note_pid(const std::string& folder) {
  const std::string name = folder + "/" + std::to_string(::getpid()) + ".pid";
  ::close(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

// A child that left the group and the session, has no parent and hears no signal; then it writes a byte to `ready`.
void daemon_child(const std::string& folder, int ready = -1) {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
  ignore_signals();
  note_pid(folder);
  if (ready >= 0) [[maybe_unused]]
    const ssize_t n = ::write(ready, "", 1);
  stay();
}

void eat(size_t megabytes, bool shared) {
  for (size_t i = 0; i < megabytes; ++i) {
    void* at =
        ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::_Exit(9);
    std::memset(at, 1, 1 << 20);
    if (i % 16 == 0) ::usleep(2000);
  }
}

// Writes far more than any test allows, but no more than a disk holds where nobody looks for a while.
int flood() {
  const std::string block(1 << 16, 'x');
  for (int i = 0; i < 1024; ++i) say(block);
  stay();
}

const std::map<std::string, std::function<int(const Words&)>>& ways() {
  static const std::map<std::string, std::function<int(const Words&)>> all = {
      {"exit", [](const Words& w) { return std::atoi(w.at(0).c_str()); }},
      {"say",
       [](const Words& w) {
         say(w.at(0));
         return 0;
       }},
      {"complain",
       [](const Words& w) {
         std::fprintf(stderr, "%s\n", w.at(0).c_str());
         return std::atoi(w.at(1).c_str());
       }},
      {"words",
       [](const Words& w) {
         for (const std::string& one : w) say("[" + one + "]\n");
         return 0;
       }},
      {"environment",
       [](const Words& w) {
         const char* v = std::getenv(w.at(0).c_str());
         say(v == nullptr ? "(unset)" : v);
         return 0;
       }},
      {"folder",
       [](const Words&) {
         char path[4096];
         say(::getcwd(path, sizeof(path)) != nullptr ? path : "?");
         return 0;
       }},
      {"copy",
       [](const Words&) {
         char b[4096];
         for (ssize_t n; (n = ::read(0, b, sizeof(b))) > 0;) say(std::string(b, static_cast<size_t>(n)));
         return 0;
       }},
      {"die",
       [](const Words& w) {
         std::signal(std::atoi(w.at(0).c_str()), SIG_DFL);  // a sanitizer may have its own handler
         std::raise(std::atoi(w.at(0).c_str()));
         return 0;
       }},
      {"hang",
       [](const Words& w) {
         note_pid(w.at(0));
         stay();
         return 0;
       }},
      {"hang_deaf",
       [](const Words& w) {
         ignore_signals();
         note_pid(w.at(0));
         stay();
         return 0;
       }},
      {"stop_itself",
       [](const Words& w) {
         note_pid(w.at(0));
         std::raise(SIGSTOP);
         return 0;
       }},
      // Children that hear no signal, in groups and sessions of their own; the program itself hangs.
      {"family",
       [](const Words& w) {
         note_pid(w.at(0));
         for (int i = 0; i < 3; ++i) {
           if (::fork() == 0) {
             ignore_signals();
             note_pid(w.at(0));
             daemon_child(w.at(0));
             stay();
           }
         }
         stay();
         return 0;
       }},
      // Leaves children behind and ends well.
      {"leave",
       [](const Words& w) {
         int ends[2] = {-1, -1};
         if (::pipe2(ends, O_CLOEXEC) != 0) return 9;
         for (int i = 0; i < 2; ++i) daemon_child(w.at(0), ends[1]);
         char byte = 0;
         for (int i = 0; i < 2; ++i) {
           if (::read(ends[0], &byte, 1) != 1) return 9;
         }
         while (::wait(nullptr) > 0) {
         }
         return 0;
       }},
      {"eat",
       [](const Words& w) {
         eat(std::strtoul(w.at(0).c_str(), nullptr, 10), false);
         stay();
         return 0;
       }},
      // The memory is a grandchild's.
      {"eat_in_child",
       [](const Words& w) {
         if (::fork() == 0) {
           ::setsid();
           if (::fork() == 0) {
             eat(std::strtoul(w.at(0).c_str(), nullptr, 10), false);
             stay();
           }
           std::_Exit(0);
         }
         stay();
         return 0;
       }},
      // Memory that is shared since a fork: once in truth, five times in the sum. Until FOLDER/go is there.
      {"share",
       [](const Words& w) {
         eat(std::strtoul(w.at(0).c_str(), nullptr, 10), false);
         for (int i = 0; i < 4; ++i)
           if (::fork() == 0) {
             note_pid(w.at(1));
             while (::access((w.at(1) + "/go").c_str(), F_OK) != 0) ::usleep(10000);
             std::_Exit(0);
           }
         while (::wait(nullptr) > 0) {
         }
         return 0;
       }},
      {"flood", [](const Words&) { return flood(); }},
      {"flood_errors",
       [](const Words&) {
         ::dup2(2, 1);
         return flood();
       }},
      {"close_output",
       [](const Words&) {
         ::close(1);
         ::close(2);
         return 0;
       }},
      // Every process forks the next one and ends: none stays to be seen for long.
      {"chain",
       [](const Words&) {
         std::signal(SIGTERM, SIG_IGN);
         for (int i = 0; i < 200000; ++i) {
           if (::fork() != 0) std::_Exit(0);
           ::setsid();
         }
         return 0;
       }},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const auto way = argc > 1 ? ways().find(argv[1]) : ways().end();
  if (way == ways().end()) return 64;
  return way->second(Words(argv + 2, argv + argc));
}
