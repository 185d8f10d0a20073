// PCRE2 over byte strings (no UTF mode), anchored matches only. PCRE2 is included by regex.cc alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/include/assay/status.h"

namespace assay::model {

struct RegexLimits {
  bool jit = true;                           // false: the interpreter from the start
  size_t jit_stack_bytes = 64UL << 20;       // the JIT's second try; its first has PCRE2's own 32 KiB
  uint32_t interpreter_heap_kib = 1U << 20;  // the last try
};

// A compiled pattern. Immutable: scanners in several threads may share it, and it must outlive them.
class Regex {
 public:
  // kInvalid with PCRE2's message and offset for a broken pattern. A machine that forbids JIT code gets the
  // interpreter.
  static Result<Regex> compile(const std::string& pattern, const RegexLimits& limits = {});

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Matches one subject from the left. Not thread-safe; make one per text.
  class Scanner {
   public:
    // `subject` is viewed, not copied.
    Scanner(const Regex& regex, std::string_view subject);
    Scanner(Scanner&&) = delete;
    ~Scanner();

    // End offset of the match that begins at `start` (<= subject size), or kNotFound when none begins there. Where the
    // JIT runs out of stack, it is tried with more, then the interpreter; kExhausted only when that fails too. A limit
    // therefore never changes a result.
    Result<size_t> match_end(size_t start);

   private:
    int run(size_t start, uint32_t options);

    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace assay::model
