#include "core/conformance/watch.h"

#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <new>

#include "core/conformance/lent.h"

namespace assay::conformance {

struct Watch::Page {
  char doing[256];
  char fault[512];
};

namespace {

char* doing_text = nullptr;  // NOLINT: a signal handler can reach nothing else
char* fault_text = nullptr;  // NOLINT: likewise

void on_fault(int signal, siginfo_t* info, void*) {
  const char* text = describe_fault(info->si_addr);
  if (text != nullptr) std::strncpy(fault_text, text, sizeof(Watch::Page::fault) - 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Watch::Watch() {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  page_ = static_cast<Page*>(memory);
}

Watch::~Watch() { ::munmap(page_, sizeof(Page)); }

void Watch::begin() {
  doing_text = page_->doing;
  fault_text = page_->fault;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
}

std::string Watch::doing() const { return page_->doing; }
std::string Watch::fault() const { return page_->fault; }

void watch_doing(const std::string& what) {
  if (doing_text == nullptr) return;
  const size_t length = std::min(what.size(), sizeof(Watch::Page::doing) - 1);
  std::memcpy(doing_text, what.data(), length);
  doing_text[length] = '\0';
}

}  // namespace assay::conformance
