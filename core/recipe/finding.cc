#include "core/recipe/finding.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/golden/text.h"

namespace assay::recipe {

std::string to_line(const Finding& finding) {
  const std::string place =
      finding.line == 0 ? finding.file : fmt::format("{}:{}:{}", finding.file, finding.line, finding.column);
  const char* severity = finding.severity == Severity::kError ? "error" : "warning";
  return fmt::format("{}: {}: {}", text::printable(place), severity, text::printable(finding.what));
}

void Findings::add(Finding finding) {
  if (list_.size() > kMostFindings) return;
  if (list_.size() == kMostFindings) {
    finding = {Severity::kError, file_, 0, 0,
               fmt::format("more than {} findings: further ones are left out", kMostFindings)};
  }
  const bool known = std::any_of(list_.begin(), list_.end(), [&](const Finding& other) {
    return other.line == finding.line && other.column == finding.column && other.what == finding.what &&
           other.file == finding.file;
  });
  if (!known) list_.push_back(std::move(finding));
}

}  // namespace assay::recipe
