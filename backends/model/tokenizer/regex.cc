#include "backends/model/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace assay::model {
namespace {

template <auto release>
struct Release {
  template <class T>
  void operator()(T* thing) const {
    release(thing);
  }
};

using CodePtr = std::unique_ptr<pcre2_code, Release<pcre2_code_free>>;
using MatchDataPtr = std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>>;
using MatchContextPtr = std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>>;
using JitStackPtr = std::unique_ptr<pcre2_jit_stack, Release<pcre2_jit_stack_free>>;

std::string error_text(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

bool is_limit(int code) {
  return code == PCRE2_ERROR_JIT_STACKLIMIT || code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
         code == PCRE2_ERROR_HEAPLIMIT || code == PCRE2_ERROR_NOMEMORY;
}

}  // namespace

struct Regex::Code {
  CodePtr code;
  RegexLimits limits;
};

struct Regex::Scanner::State {
  const Code& regex;
  std::string_view subject;
  MatchDataPtr match_data;
  MatchContextPtr context;
  JitStackPtr jit_stack;
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(const std::string& pattern, const RegexLimits& limits) {
  int error = 0;
  size_t error_offset = 0;
  // Anchored and without start optimisation: a search for a code unit further on would make a scan quadratic.
  CodePtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_ANCHORED | PCRE2_NO_START_OPTIMIZE, &error, &error_offset, nullptr));
  if (!code) {
    return invalid("pattern '" + pattern + "': " + error_text(error) + " at offset " + std::to_string(error_offset));
  }
  if (limits.jit) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // a failure leaves the interpreter in place
  return Regex(std::make_unique<Code>(Code{std::move(code), limits}));
}

Regex::Scanner::Scanner(const Regex& regex, std::string_view subject)
    : state_(std::make_unique<State>(State{
          .regex = *regex.code_,
          .subject = subject,
          .match_data = MatchDataPtr(pcre2_match_data_create_from_pattern(regex.code_->code.get(), nullptr)),
          .context = MatchContextPtr(pcre2_match_context_create(nullptr)),
          .jit_stack = nullptr,
      })) {
  // Only memory is bounded: the default count limits are meant for patterns that backtrack exponentially.
  pcre2_set_match_limit(state_->context.get(), UINT32_MAX);
  pcre2_set_depth_limit(state_->context.get(), UINT32_MAX);
  pcre2_set_heap_limit(state_->context.get(), regex.code_->limits.interpreter_heap_kib);
}

Regex::Scanner::~Scanner() = default;

int Regex::Scanner::run(size_t start, uint32_t options) {
  return pcre2_match(state_->regex.code.get(), reinterpret_cast<PCRE2_SPTR>(state_->subject.data()),
                     state_->subject.size(), start, options, state_->match_data.get(), state_->context.get());
}

Result<size_t> Regex::Scanner::match_end(size_t start) {
  int found = run(start, 0);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT && !state_->jit_stack) {
    state_->jit_stack.reset(pcre2_jit_stack_create(32UL << 10, state_->regex.limits.jit_stack_bytes, nullptr));
    pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->jit_stack.get());
    found = run(start, 0);
  }
  if (is_limit(found)) found = run(start, PCRE2_NO_JIT);
  if (found == PCRE2_ERROR_NOMATCH) return not_found("no match at offset " + std::to_string(start));
  if (found < 0) return exhausted("regex at offset " + std::to_string(start) + ": " + error_text(found));
  return pcre2_get_ovector_pointer(state_->match_data.get())[1];
}

}  // namespace assay::model
