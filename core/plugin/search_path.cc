#include "core/plugin/search_path.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

namespace assay::plugin {
namespace {

namespace fs = std::filesystem;

std::string identity(const fs::path& path) {
  std::error_code code;
  const fs::path full = fs::weakly_canonical(path, code);
  return code ? path.string() : full.string();
}

}  // namespace

std::vector<SearchDir> search_dirs(const SearchOptions& options) {
  const std::string installed = options.install_dir.empty() ? "" : identity(options.install_dir);
  std::vector<SearchDir> dirs;
  std::set<std::string> seen;
  const auto add = [&](const fs::path& path) {
    if (path.empty()) return;
    const std::string id = identity(path);
    if (seen.insert(id).second) dirs.push_back({path, id == installed});
  };
  for (const fs::path& path : options.plugin_path) add(path);
  for (size_t begin = 0; begin <= options.environment.size();) {
    const size_t end = std::min(options.environment.find(':', begin), options.environment.size());
    add(options.environment.substr(begin, end - begin));
    begin = end + 1;
  }
  add(options.install_dir);
  return dirs;
}

Listing list_files(const std::vector<SearchDir>& dirs) {
  Listing listing;
  std::map<std::pair<Kind, std::string>, fs::path> first;
  for (const SearchDir& dir : dirs) {
    std::error_code code;
    std::vector<fs::path> files;
    fs::directory_iterator entry(dir.path, code);
    if (code) {
      listing.unreadable.push_back(dir.path);
      continue;
    }
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
      if (entry->path().extension() == ".so") files.push_back(entry->path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::optional<FileName> claim = parse_file_name(file);
      if (!claim) {
        listing.misnamed.push_back(file);
        continue;
      }
      const auto [place, is_first] = first.try_emplace({claim->kind, claim->name}, file);
      listing.candidates.push_back({file, *claim, dir.trusted, is_first ? fs::path() : place->second});
    }
  }
  return listing;
}

}  // namespace assay::plugin
