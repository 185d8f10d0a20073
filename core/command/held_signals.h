// Signals kept away from a child between fork and exec.
#pragma once

#include <csignal>

namespace assay::command {

// Blocks every signal for the calling thread while it lives. A fork under it gives a child that runs no handler of the
// caller's, and loses no signal that is sent to it, until it unblocks them.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_ = {};
};

// For a child before it executes a program: every signal has its default action and is let in.
inline void release_signals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace assay::command
