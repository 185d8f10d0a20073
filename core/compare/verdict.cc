#include "assay/verdict.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

constexpr std::array<std::string_view, 13> kNames = {"SKIPPED", "IDENTICAL", "EQUIVALENT", "XFAIL", "WAIVED",
                                                     "XPASS",   "DRIFT",     "DIVERGED",   "FLAKY", "NOT_COMPARABLE",
                                                     "INVALID", "INFRA",     "CRASHED"};

}  // namespace

std::string_view to_string(Verdict verdict) { return kNames[static_cast<size_t>(verdict)]; }

std::optional<Verdict> parse_verdict(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Verdict>(found - kNames.begin());
}

bool passes(Verdict verdict, bool strict) {
  return verdict == Verdict::kIdentical || (verdict == Verdict::kEquivalent && !strict) || verdict == Verdict::kXfail ||
         verdict == Verdict::kWaived;
}

Verdict worst(Verdict a, Verdict b) { return std::max(a, b); }

bool has_unused_waiver(const CaseVerdict& verdict) {
  if (verdict.declared.empty()) return false;
  return verdict.verdict == Verdict::kXpass || (!verdict.judged && passes(verdict.verdict));
}

bool disagrees(const CaseVerdict& verdict, bool strict) {
  return verdict.compat && verdict.compat->passes() != passes(verdict.verdict, strict);
}

std::string compat_line(const CaseVerdict& verdict) {
  if (!verdict.compat) return "";
  constexpr std::array<std::string_view, 3> kWords = {"passes", "fails", "compares nothing"};
  std::string line = "assay: " + std::string(to_string(verdict.verdict)) + " · megatron: ";
  line += kWords[verdict.compat->outcome];
  return line + " (" + verdict.compat->message + ")";
}

int exit_code(const std::vector<Verdict>& verdicts, bool strict) {
  bool ran = false;
  bool infra = false;
  for (const Verdict verdict : verdicts) {
    if (verdict == Verdict::kSkipped) continue;
    ran = true;
    if (verdict == Verdict::kInfra) {
      infra = true;
    } else if (!passes(verdict, strict)) {
      return 1;
    }
  }
  if (!ran) return 4;
  return infra ? 3 : 0;
}

}  // namespace assay
