#include "core/discover/find_directories.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include "core/golden/golden_name.h"

namespace assay::discover {
namespace {

constexpr std::string_view kConfigName = "model_config.yaml";

bool is_directory(const std::string& path, unsigned char type) {
  if (type == DT_DIR) return true;
  if (type != DT_LNK && type != DT_UNKNOWN) return false;
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
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
      : root_(std::move(root)), seen_(seen.begin(), seen.end()), all_seen_(seen), found_(found) {
    std::error_code code;
    for (std::filesystem::path at = std::filesystem::canonical(root_, code); at.has_relative_path();) {
      at = at.parent_path();
      struct stat info {};
      if (::stat(at.c_str(), &info) == 0) above_.insert({info.st_dev, info.st_ino});
    }
  }

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
    while (const dirent* entry = ::readdir(directory.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || name == ".git") continue;
      if (name == kConfigName) {
        is_case = true;
      } else if (is_golden_name(name)) {
        here.goldens.emplace_back(name);
      } else if (std::string child = join(path, name); is_directory(child, entry->d_type)) {
        below.push_back(std::move(child));
      }
    }
    if (is_case) {
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

Status find_directories(const std::string& path, std::vector<DirectoryId>& seen, std::vector<FoundDirectory>& found) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const std::string message = path + ": no such case, tree or model_config.yaml: " + std::strerror(errno);
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? not_found(message) : infra(message);
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
