// What a check finds, and what it looks at. Used in the child process of one check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/sdk.hpp"
#include "core/conformance/kit.h"
#include "core/plugin/plugin.h"

namespace assay::conformance {

class Findings {
 public:
  // Counts one expectation; notes `message` (cut to one printable line) where it does not hold. Returns `holds`.
  bool expect(bool holds, const std::string& message);
  void fail(const std::string& message) { expect(false, message); }
  // What cannot be looked at here, and why.
  void not_checked(const std::string& reason);
  // Likewise, where that leaves nothing of the whole check: what held on the way is then no pass.
  void nothing_checked(const std::string& reason);

  bool ok() const { return failures_.empty(); }
  const std::vector<std::string>& failures() const { return failures_; }
  const std::vector<std::string>& left_out() const { return left_out_; }
  uint64_t expectations() const { return nothing_ ? 0 : expectations_; }

 private:
  std::vector<std::string> failures_;  // each once
  std::vector<std::string> left_out_;
  uint64_t expectations_ = 0;
  bool nothing_ = false;
};

// What every check gets.
struct Subject {
  plugin::Plugin plugin;
  const assay_host* host = nullptr;
  KitOptions options;
};

struct Check {
  const char* name;
  void (*run)(const Subject& subject, Findings& findings);
};

// The checks of each kind, in order.
std::vector<Check> descriptor_checks();  // of every kind
std::vector<Check> engine_checks();
std::vector<Check> backend_checks();
std::vector<Check> comparator_checks();
std::vector<Check> launcher_checks();

// The text is UTF-8, without control characters: fit for one line of a report.
bool one_line(std::string_view text);
bool is_utf8(std::string_view text);

// "INVALID" for ASSAY_INVALID; "code 99" for one that there is none of.
std::string code_name(int32_t code);

// Calls `function(arguments..., error)` with an error buffer full of rubbish, and expects what the border promises: a
// known code, no exception, and with a failure a filled error. `what` names the call in findings, and on the watch.
struct Called {
  int32_t code = 0;
  std::string message;  // of a failure
  bool ok() const { return code == ASSAY_OK; }
  std::string text() const { return code_name(code) + ": " + message; }
};
Called after_call(Findings& findings, const std::string& what, int32_t code, const assay_error& error);
void before_call(const std::string& what, assay_error* error);
void escaped(Findings& findings, const std::string& what);

template <class Function, class... Arguments>
Called call(Findings& findings, const std::string& what, Function function, Arguments... arguments) {
  assay_error error;
  before_call(what, &error);
  int32_t code = ASSAY_INTERNAL;
  try {
    code = function(arguments..., &error);
  } catch (...) {
    escaped(findings, what);
    return {ASSAY_INTERNAL, "an exception"};
  }
  return after_call(findings, what, code, error);
}

}  // namespace assay::conformance
