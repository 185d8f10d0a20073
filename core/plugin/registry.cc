#include "core/plugin/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/plugin/probe.h"

namespace assay::plugin {

PluginRegistry::PluginRegistry(const SearchOptions& options, const assay_host* host)
    : dirs_(search_dirs(options)), listing_(list_files(dirs_)), host_(host != nullptr ? host : silent_host()) {}

std::vector<std::string> PluginRegistry::names(Kind kind) const {
  std::vector<std::string> names;
  for (const Candidate& candidate : listing_.candidates) {
    if (candidate.claim.kind == kind && candidate.shadowed_by.empty()) names.push_back(candidate.claim.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<const Plugin*> PluginRegistry::find(Kind kind, std::string_view name) {
  if (Status complete = listing_.complete(); !complete.ok()) return complete;
  const auto key = std::make_pair(kind, std::string(name));
  auto entry = loaded_.find(key);
  if (entry == loaded_.end()) {
    const auto candidate = std::find_if(
        listing_.candidates.begin(), listing_.candidates.end(),
        [&](const Candidate& c) { return c.claim.kind == kind && c.claim.name == name && c.shadowed_by.empty(); });
    if (candidate == listing_.candidates.end()) {
      std::vector<std::string> searched;
      for (const SearchDir& dir : dirs_) searched.push_back(dir.path.string());
      return not_found(fmt::format(
          "no {0} '{1}': no file {0}_{1}.so in {2}; there are: {3}; name one of them or add "
          "its folder with --plugin-path",
          to_string(kind), name, searched.empty() ? "(no folder)" : fmt::format("{}", fmt::join(searched, ", ")),
          names(kind).empty() ? "none" : fmt::format("{}", fmt::join(names(kind), ", "))));
    }
    Entry made;
    auto plugin = std::make_unique<Plugin>();
    std::optional<LoadError> broken;
    if (!candidate->trusted) broken = probe(candidate->file);
    if (!broken) broken = load(candidate->file, host_, plugin.get());
    if (broken) {
      made.status = unsupported(
          fmt::format("{} '{}': {}: {}", to_string(kind), name, to_string(broken->failure), broken->message));
    } else {
      made.plugin = std::move(plugin);
    }
    entry = loaded_.emplace(key, std::move(made)).first;
  }
  if (!entry->second.status.ok()) return entry->second.status;
  return static_cast<const Plugin*>(entry->second.plugin.get());
}

Result<const Plugin*> PluginRegistry::find_metric_comparator(std::string_view metric) {
  const auto serves = [&](const Plugin& plugin) {
    return std::find(plugin.metrics.begin(), plugin.metrics.end(), metric) != plugin.metrics.end();
  };
  Result<const Plugin*> named = find(Kind::kComparator, metric);
  if (!named && named.status().code() != StatusCode::kNotFound) return named;
  if (named && serves(**named)) return named;
  std::vector<std::string> broken;
  for (const Candidate& candidate : listing_.candidates) {
    if (candidate.claim.kind != Kind::kComparator || !candidate.shadowed_by.empty()) continue;
    Result<const Plugin*> other = find(Kind::kComparator, candidate.claim.name);
    if (other && serves(**other)) return other;
    if (!other) broken.push_back(other.status().message());
  }
  std::string message =
      named ? fmt::format("comparator '{0}' does not serve metric '{0}', but {1}; name one of those in METRICS", metric,
                          fmt::join((*named)->metrics, ", "))
            : named.status().message() + ", or correct METRICS: none of them serves this metric";
  if (!broken.empty()) message += fmt::format("; not asked: {}", fmt::join(broken, "; "));
  return not_found(std::move(message));
}

Result<const assay_comparator_table*> PluginRegistry::comparator_table(std::string_view metric) {
  const Result<const Plugin*> comparator = find_metric_comparator(metric);
  if (!comparator) return comparator.status();
  return (*comparator)->comparator();
}

}  // namespace assay::plugin
