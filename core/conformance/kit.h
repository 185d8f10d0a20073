// The conformance kit: examines a plugin file through its C border alone, each check in a child process of its own, so
// that a crash or a hang is a finding.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::conformance {

struct KitOptions {
  std::string options = "{}";              // JSON object that the plugin is opened with
  std::vector<std::string> prompts;        // texts for engines without a backend; empty: two of our own
  std::chrono::milliseconds limit{60000};  // of one check
};

enum class Outcome { kPassed, kFailed, kNotChecked };

// One thing that was looked at. What could not be looked at is kNotChecked with the reason, never kPassed.
struct CheckResult {
  std::string check;  // e.g. "ownership"
  Outcome outcome = Outcome::kPassed;
  std::string message;        // one line: what was seen and what was expected; of a pass: empty
  uint64_t expectations = 0;  // of a pass: how many held
};

struct KitReport {
  std::filesystem::path file;
  std::string kind;  // the rest: from the descriptor, empty where it does not load
  std::string name;
  std::string version;
  std::string abi;
  std::vector<CheckResult> results;

  // Nothing failed, and something was looked at.
  bool passed() const;
};

// Loads nothing into this process. kInvalid for options that are no JSON object; kInfra where no process can be made. A
// file that does not load is a failed check.
Result<KitReport> test_plugin(const std::filesystem::path& file, const KitOptions& options);

std::string to_text(const KitReport& report);  // lines for people, ends with a newline
std::string to_json(const KitReport& report);  // one object {"file", "kind", "name", ..., "passed", "checks": [...]}

}  // namespace assay::conformance
