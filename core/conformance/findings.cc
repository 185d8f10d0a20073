#include "core/conformance/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/conformance/watch.h"
#include "core/golden/text.h"

namespace assay::conformance {
namespace {

constexpr char kRubbish = '\x5A';

std::string printable_line(const std::string& text) {
  std::string line;
  for (char c : text.substr(0, 600)) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return line;
}

template <class Fits>
bool all_of_it(std::string_view text, const Fits& fits) {
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint point = text::decode(text, at);
    if (!fits(point)) return false;
    at += point.length;
  }
  return true;
}

}  // namespace

bool Findings::expect(bool holds, const std::string& message) {
  ++expectations_;
  if (holds) return true;
  const std::string line = printable_line(message);
  if (failures_.size() < 20 && std::find(failures_.begin(), failures_.end(), line) == failures_.end()) {
    failures_.push_back(line);
  }
  return false;
}

void Findings::not_checked(const std::string& reason) {
  const std::string line = printable_line(reason);
  if (std::find(left_out_.begin(), left_out_.end(), line) == left_out_.end()) left_out_.push_back(line);
}

void Findings::nothing_checked(const std::string& reason) {
  nothing_ = true;
  not_checked(reason);
}

bool one_line(std::string_view text) {
  return all_of_it(text, [](const text::CodePoint& point) { return point.valid && point.value >= 0x20; });
}

bool is_utf8(std::string_view text) {
  return all_of_it(text, [](const text::CodePoint& point) { return point.valid; });
}

std::string code_name(int32_t code) {
  constexpr std::array kNames = {"OK",        "INVALID", "NOT_FOUND", "UNSUPPORTED",
                                 "EXHAUSTED", "INFRA",   "CANCELLED", "INTERNAL"};
  return code >= 0 && static_cast<size_t>(code) < kNames.size() ? kNames[static_cast<size_t>(code)]
                                                                : fmt::format("code {}", code);
}

void before_call(const std::string& what, assay_error* error) {
  watch_doing(what);
  std::memset(error, kRubbish, sizeof(*error));
}

void escaped(Findings& findings, const std::string& what) {
  findings.fail(what + ": an exception crossed the border; catch it in the plugin (sdk::guarded) and return a code");
}

Called after_call(Findings& findings, const std::string& what, int32_t code, const assay_error& error) {
  if (code == ASSAY_OK) return {};
  findings.expect(code > 0 && code <= ASSAY_INTERNAL,
                  fmt::format("{}: returned {}, expected one of the codes of assay_code", what, code));
  const auto* end = static_cast<const char*>(std::memchr(error.message, '\0', sizeof(error.message)));
  if (end == nullptr || (end != error.message && error.message[0] == kRubbish && error.message[1] == kRubbish)) {
    findings.fail(what + ": failed without a NUL-terminated message; fill `error` on every failure");
    return {code, ""};
  }
  Called called{code, error.message};
  findings.expect(error.code == code, fmt::format("{}: returned {} and wrote code {} into the error, expected the same",
                                                  what, code, error.code));
  findings.expect(!called.message.empty(), what + ": failed with an empty message; say what was wrong");
  findings.expect(one_line(called.message),
                  fmt::format("{}: its message is not one line of UTF-8: '{}'", what, called.message));
  return called;
}

}  // namespace assay::conformance
