#include "core/run/environment.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/golden.h"

namespace assay::run {
namespace {

constexpr size_t kNamesInReason = 4;

}  // namespace

void explain_environment(const Provenance& golden, const Provenance& result, CaseVerdict* verdict) {
  verdict->environment = provenance_differences(golden, result);
  if (verdict->environment.empty()) return;
  std::vector<std::string> names;
  for (const std::string& line : verdict->environment) names.push_back(line.substr(0, line.find(':')));
  const size_t shown = std::min(names.size(), kNamesInReason);
  const size_t more = names.size() - shown;
  names.resize(shown);
  verdict->reason += fmt::format("; environment changed: {}{}", fmt::join(names, ", "),
                                 more > 0 ? fmt::format(" and {} more", more) : "");
}

std::optional<Provenance> provenance_of_golden(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const Result<ResultSet> golden = read_results(path);
  if (!golden) return std::nullopt;
  Result<GoldenMeta> meta = parse_golden_meta(golden->extra);
  return meta ? meta->provenance : std::nullopt;
}

}  // namespace assay::run
