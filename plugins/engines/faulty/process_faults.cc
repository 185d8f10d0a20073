#include "plugins/engines/faulty/process_faults.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace assay::engines {
namespace {

constexpr size_t kLeakLimit = size_t{4} << 30;

void touch(void* memory, size_t bytes) {
  std::memset(memory, 0x5A, bytes);
  asm volatile("" : : "r"(memory) : "memory");  // the stores are wanted
}

}  // namespace

Status harm_process(Fault fault) {
  switch (fault) {
    case Fault::kCrash:
      std::raise(SIGSEGV);
      return {};
    case Fault::kAbort:
      std::raise(SIGABRT);
      return {};
    case Fault::kExit:
      ::_exit(0);
    case Fault::kHang:
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    case Fault::kLeakMemory:
      leak_memory(kLeakLimit);
      return {};
    case Fault::kBrokenStep:
      return internal("engine faulty: the step is broken, as planned");
    default:
      return {};
  }
}

void leak_memory(size_t bytes) {
  constexpr size_t kPiece = size_t{64} << 20;
  for (size_t taken = 0; taken < bytes; taken += kPiece) {
    void* piece = std::malloc(kPiece);  // NOLINT: never freed, that is the point
    if (piece == nullptr) return;
    touch(piece, kPiece);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

uint64_t next_call() {
  static std::atomic<uint64_t> calls{0};  // NOLINT: outliving the engine is the fault
  return ++calls;
}

bool is_first_model(const void* model) {
  static const void* const first = model;  // NOLINT: outliving the engine is the fault
  return model == first;
}

std::unique_ptr<char[]> take_memory(size_t bytes) {
  std::unique_ptr<char[]> memory(new char[bytes]);
  touch(memory.get(), bytes);
  return memory;
}

}  // namespace assay::engines
