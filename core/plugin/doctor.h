// What `assay plugin list` and `assay plugin doctor` tell about every candidate file.
#pragma once

#include <string>
#include <vector>

#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"

namespace assay::plugin {

struct DoctorRow {
  std::filesystem::path file;
  std::string kind;  // "" when the file name tells none
  std::string name;
  bool ok = false;                    // it loads and its descriptor is in order
  std::filesystem::path shadowed_by;  // not used because of this earlier file; empty: used
  std::string failure;                // words of LoadFailure; "" when ok
  std::string message;                // one line with path, versions and remedy; "" when ok
  std::string version;                // the rest: from the descriptor, empty unless ok
  std::string abi;                    // "1.0"
  std::string description;
  std::vector<std::string> capabilities;
  std::vector<std::string> metrics;  // comparators: names in METRICS that it serves
  std::string levels;                // engines and backends that compute: level_names of what they claim
};

struct DoctorReport {
  std::string abi;  // of this program
  std::vector<SearchDir> dirs;
  std::vector<UnreadableDir> unreadable;  // folders of the search path that cannot be read
  std::vector<DoctorRow> rows;

  // Every file that would be used is in order. An unreadable folder counts only if it was named by the user.
  bool healthy() const;
};

// Examines every candidate in a child process; nothing is loaded into this one.
DoctorReport doctor(const SearchOptions& options);

std::string to_text(const DoctorReport& report);  // lines for people, ends with a newline
std::string to_json(const DoctorReport& report);  // one object {"abi", "search", "plugins": [...]}

// Words for ASSAY_CAP_* bits, e.g. "logprobs"; unknown bits as "bit 17".
std::vector<std::string> capability_names(uint64_t capabilities);

}  // namespace assay::plugin
