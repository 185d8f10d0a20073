// The one place that holds loaded plugins.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"

namespace assay::plugin {

// Finds plugins by kind and name and loads each when first asked for. Files are named <kind>_<name>.so, so that no
// other file is opened. A plugin outside the install directory is probed in a child process first. The first file of a
// name is the one that counts: when it is broken, the error is reported and later ones are not tried. For one thread at
// a time. Plugins handed out stay valid until the process ends.
class PluginRegistry {
 public:
  // `host` (null: silent_host()) must live until the process ends.
  explicit PluginRegistry(const SearchOptions& options, const assay_host* host = nullptr);

  // kNotFound: no file of that name (the message lists the names that exist); kUnsupported: broken or for another ABI;
  // kInfra: a folder of --plugin-path cannot be read.
  Result<const Plugin*> find(Kind kind, std::string_view name);

  // The comparator that serves a name in METRICS: the one called so, unless it lists other metrics alone; else the
  // first in search order that lists the name (files of one folder in order of their names). Loads comparators until
  // one serves it. Fails like `find`; comparators that cannot be loaded are named where nothing serves the metric.
  Result<const Plugin*> find_metric_comparator(std::string_view metric);
  Result<const assay_comparator_table*> comparator_table(std::string_view metric);  // that comparator's

  // Names of the plugins of a kind that files exist for, ascending. Loads nothing.
  std::vector<std::string> names(Kind kind) const;

  // All candidate files, shadowed and misnamed ones included, as found when the registry was made. Loads nothing.
  const Listing& list() const { return listing_; }
  const std::vector<SearchDir>& dirs() const { return dirs_; }

 private:
  struct Entry {
    std::unique_ptr<Plugin> plugin;
    Status status;
  };

  std::vector<SearchDir> dirs_;
  Listing listing_;
  const assay_host* host_;
  std::map<std::pair<Kind, std::string>, Entry, std::less<>> loaded_;
};

}  // namespace assay::plugin
