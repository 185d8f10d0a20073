#include "tools/self_test/fault_list.h"

#include <fnmatch.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace assay::self_test {
namespace {

Result<FaultRow> read_row(const nlohmann::json& json) {
  FaultRow row;
  row.name = json.value("name", "");
  row.family = json.value("family", "");
  row.metric = json.value("metric", "");
  row.places = json.value("places", "");
  row.what = json.value("what", "");
  std::istringstream words(json.value("verdicts", ""));
  for (std::string word; words >> word;) {
    const std::optional<Verdict> verdict = parse_verdict(word);
    if (!verdict || passes(*verdict)) {
      return invalid("engine faulty: fault " + row.name + " names verdict " + word + ", expected one that fails");
    }
    row.verdicts.push_back(*verdict);
  }
  if (row.name.empty() || row.metric.empty() || row.verdicts.empty()) {
    return invalid("engine faulty: a fault lacks its name, metric or verdicts; engine and program belong together");
  }
  return row;
}

}  // namespace

Result<std::vector<FaultRow>> read_faults(const std::string& schema) {
  const nlohmann::json json = nlohmann::json::parse(schema, nullptr, false);
  if (!json.is_object() || !json.contains("faults") || !json["faults"].is_array()) {
    return invalid("engine faulty: its options schema lists no faults; engine and program belong together");
  }
  std::vector<FaultRow> rows;
  for (const nlohmann::json& one : json["faults"]) {
    Result<FaultRow> row = one.is_object() ? read_row(one) : invalid("engine faulty: a fault is no JSON object");
    if (!row) return row.status();
    rows.push_back(*std::move(row));
  }
  return rows;
}

bool matches(const std::string& glob, const std::string& name) {
  if (glob.empty()) return true;
  std::istringstream globs(glob);
  for (std::string one; std::getline(globs, one, ',');) {
    if (::fnmatch(one.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

}  // namespace assay::self_test
