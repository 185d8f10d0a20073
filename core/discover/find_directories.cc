#include "core/discover/find_directories.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "core/golden/golden_name.h"

namespace assay::discover {
namespace {

constexpr std::string_view kConfigName = "model_config.yaml";

bool leads_nowhere(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

// nullopt: the system does not say; errno tells why.
std::optional<bool> is_directory(const std::string& path, unsigned char type) {
  if (type == DT_DIR) return true;
  if (type != DT_LNK && type != DT_UNKNOWN) return false;
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return S_ISDIR(info.st_mode);
  return leads_nowhere(errno) ? std::optional(false) : std::nullopt;
}

std::string join(const std::string& directory, std::string_view name) {
  return directory.ends_with('/') ? directory + std::string(name) : directory + "/" + std::string(name);
}

struct Closer {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class Walker {
 public:
  Walker(std::string root, std::vector<DirectoryId>& seen, std::vector<FoundDirectory>& found)
      : root_(std::move(root)),
        above_(directories_above(root_)),
        seen_(seen.begin(), seen.end()),
        all_seen_(seen),
        found_(found) {}

  void walk(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return refuse(path, unlistable(path));
    const DirectoryId id{info.st_dev, info.st_ino};
    if (above_.count(id) > 0) {
      return refuse(path,
                    invalid(path + ": leads to a folder above " + root_ +
                            ", all of whose cases it would bring in; remove the link, or give that folder as PATH"));
    }
    if (!seen_.insert(id).second) return;
    all_seen_.push_back(id);
    const std::unique_ptr<DIR, Closer> directory(::opendir(path.c_str()));
    if (directory == nullptr) return refuse(path, unlistable(path));
    FoundDirectory here{root_, path, {}, {}};
    bool is_case = false;
    std::vector<std::string> below;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || name == ".git") continue;
      if (name == kConfigName) {
        is_case = true;
      } else if (is_golden_name(name)) {
        here.goldens.emplace_back(name);
      } else {
        std::string child = join(path, name);
        const std::optional<bool> folder = is_directory(child, entry->d_type);
        if (!folder) refuse(child, infra(child + ": cannot be looked at: " + std::strerror(errno)));
        if (folder.value_or(false)) below.push_back(std::move(child));
      }
    }
    if (errno != 0) {
      refuse(path, unlistable(path));
    } else if (is_case) {
      std::sort(here.goldens.begin(), here.goldens.end());
      found_.push_back(std::move(here));
    }
    std::sort(below.begin(), below.end());
    for (const std::string& child : below) walk(child);
  }

 private:
  static Status unlistable(const std::string& path) {
    return infra(path + ": the directory cannot be listed: " + std::strerror(errno));
  }
  void refuse(const std::string& path, Status error) { found_.push_back({root_, path, {}, std::move(error)}); }

  std::string root_;
  std::set<DirectoryId> above_;
  std::set<DirectoryId> seen_;
  std::vector<DirectoryId>& all_seen_;
  std::vector<FoundDirectory>& found_;
};

}  // namespace

std::set<DirectoryId> directories_above(const std::string& root) {
  std::set<DirectoryId> above;
  std::error_code code;
  for (std::filesystem::path at = std::filesystem::canonical(root, code); at.has_relative_path();) {
    at = at.parent_path();
    struct stat info {};
    if (::stat(at.c_str(), &info) == 0) above.insert({info.st_dev, info.st_ino});
  }
  return above;
}

Status find_directories(const std::string& path, std::vector<DirectoryId>& seen, std::vector<FoundDirectory>& found) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const std::string message = path + ": no such case, tree or model_config.yaml: " + std::strerror(errno);
    return leads_nowhere(errno) ? not_found(message) : infra(message);
  }
  std::string root = path;
  if (!S_ISDIR(info.st_mode)) {
    const size_t slash = root.rfind('/');
    const std::string name = slash == std::string::npos ? root : root.substr(slash + 1);
    if (name != kConfigName) return invalid(path + ": not a case: give a directory or a model_config.yaml");
    root = slash == std::string::npos ? "." : slash == 0 ? "/" : root.substr(0, slash);
  }
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  Walker(root, seen, found).walk(root);
  return {};
}

}  // namespace assay::discover
