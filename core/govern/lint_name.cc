// Words in the names of golden files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "core/discover/nearest.h"
#include "core/golden/golden_name.h"
#include "core/golden/platforms.h"
#include "core/golden/text.h"
#include "core/govern/lint.h"

namespace assay::govern {
namespace {

constexpr std::array<std::string_view, 2> kEnvironments = {"dev", "lts"};

bool known(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool plain(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

// Lower-case letters and digits alone: what is left when separators and spelling of the same word differ.
std::string core_of(std::string_view word) {
  std::string core;
  for (const unsigned char c : word) {
    if (std::isalnum(c) != 0) core += static_cast<char>(std::tolower(c));
  }
  return core;
}

std::string digits_of(std::string_view word) {
  std::string digits;
  for (const unsigned char c : word) {
    if (std::isdigit(c) != 0) digits += static_cast<char>(c);
  }
  return digits;
}

// A known word that this one is a slip of: the same but for case and separators, or one edit away with the same
// figures (dxg_h100) — dgx_h100 and dgx_a100 are both known, dgx_h300 is another machine.
std::string_view meant(std::string_view word, std::span<const std::string_view> words) {
  for (const std::string_view candidate : words) {
    if (core_of(candidate) == core_of(word)) return candidate;
    const bool near = word.size() > 3 && digits_of(candidate) == digits_of(word) && !digits_of(word).empty() &&
                      candidate.size() != word.size();
    if (near && discover::edit_distance(word, candidate, 1) <= 1) return candidate;
    std::string sorted(word);
    std::string other(candidate);
    std::sort(sorted.begin(), sorted.end());
    std::sort(other.begin(), other.end());
    if (sorted == other) return candidate;  // the same letters in another order
  }
  return {};
}

// A suffix like _2nd, or the name of a cluster after the machine's, makes a platform of its own.
void check_word(const std::string& path, const char* what, std::string_view word,
                std::span<const std::string_view> words, std::vector<LintFinding>& findings) {
  if (known(word, words)) return;
  const std::string shown = text::quoted(word, 60);
  if (const std::string_view right = meant(word, words); !right.empty()) {
    findings.push_back({LintLevel::kError, "name", path,
                        fmt::format("{} {} is a slip of '{}': no run looks for this file", what, shown, right)});
  } else if (!plain(word)) {
    findings.push_back(
        {LintLevel::kError, "name", path, fmt::format("{} {}: expected letters, digits and underscores", what, shown)});
  } else {
    findings.push_back(
        {LintLevel::kNote, "unknown-name", path,
         fmt::format("{} {} is not one that assay knows: only runs that name it find this file", what, shown)});
  }
}

}  // namespace

std::vector<LintFinding> lint_golden_name(const std::string& path) {
  std::vector<LintFinding> findings;
  const std::string file = std::filesystem::path(path).filename().string();
  const auto name = parse_golden_name(file);
  if (!name) {
    findings.push_back(
        {LintLevel::kError, "name", path,
         "looks like a golden and is never found: expected golden_values_<environment>_<platform>.json"});
    return findings;
  }
  check_word(path, "environment", name->environment, kEnvironments, findings);
  if (name->platform.empty()) {
    findings.push_back({LintLevel::kNote, "unknown-name", path, "names no platform: no run looks for this file"});
  } else {
    check_word(path, "platform", name->platform, kKnownPlatforms, findings);
  }
  return findings;
}

}  // namespace assay::govern
