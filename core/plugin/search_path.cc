#include "core/plugin/search_path.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "core/golden/text.h"

namespace assay::plugin {
namespace {

namespace fs = std::filesystem;

std::string identity(const fs::path& path) {
  std::error_code code;
  const fs::path full = fs::weakly_canonical(path, code);
  return code ? path.string() : full.string();
}

constexpr const char* kNoUtf8 =
    ": the name is no UTF-8, and no worker could be told of it; rename the folder, or give a link with another name";

std::string complaint_about(const UnreadableDir& one) {
  return "--plugin-path " + one.dir.path.string() + ": the folder cannot be read: " + one.reason +
         "; name a folder with plugins, or leave the option out";
}

}  // namespace

std::vector<SearchDir> search_dirs(const SearchOptions& options) {
  const std::string installed = options.install_dir.empty() ? "" : identity(options.install_dir);
  std::vector<SearchDir> dirs;
  std::set<std::string> seen;
  const auto add = [&](const fs::path& path, bool given) {
    if (path.empty()) return;
    const std::string id = identity(path);
    if (seen.insert(id).second) dirs.push_back({path, id == installed, given});
  };
  for (const fs::path& path : options.plugin_path) add(path, true);
  for (size_t begin = 0; begin <= options.environment.size();) {
    const size_t end = std::min(options.environment.find(':', begin), options.environment.size());
    add(options.environment.substr(begin, end - begin), false);
    begin = end + 1;
  }
  add(options.install_dir, false);
  return dirs;
}

Status check_search(const SearchOptions& options) {
  for (const fs::path& path : options.plugin_path) {
    if (path.empty()) return invalid("--plugin-path '': a folder is expected");
    if (!text::ill_formed(path.string())) continue;
    return invalid("--plugin-path " + path.string() + kNoUtf8);
  }
  if (text::ill_formed(options.environment)) return invalid("ASSAY_PLUGIN_PATH " + options.environment + kNoUtf8);
  for (const UnreadableDir& one : list_files(search_dirs(options)).unreadable) {
    if (one.dir.given) return invalid(complaint_about(one));
  }
  return {};
}

Status Listing::complete() const {
  for (const UnreadableDir& one : unreadable) {
    if (one.dir.given) return infra(complaint_about(one));
  }
  return {};
}

Listing list_files(const std::vector<SearchDir>& dirs) {
  Listing listing;
  std::map<std::pair<Kind, std::string>, fs::path> first;
  for (const SearchDir& dir : dirs) {
    std::error_code code;
    std::vector<fs::path> files;
    fs::directory_iterator entry(dir.path, code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
      if (entry->path().extension() == ".so") files.push_back(entry->path());
    }
    if (code) listing.unreadable.push_back({dir, code.message()});
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
